package dockctl

// PipeConfig is what the operator says about a pipe.
type PipeConfig struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"` // with prefix lengths: one IPv4, one IPv6, or both
	Gateways  []string `json:"gateways,omitempty"`
}

// Pipe is a pipe as the daemon has it.
type Pipe struct {
	PipeConfig
	Attached  bool       `json:"attached"`
	PID       int        `json:"pid"` // of the process that has attached, 0 if none has
	Epoch     int        `json:"epoch"`
	Master    int        `json:"master"`
	NICQueue  int        `json:"nic_queue"` // 0: steered by software
	Directory string     `json:"directory"`
	Stats     *PipeStats `json:"stats,omitempty"`
}

// PipeStats are counters since the daemon's start. tx is what the container sends, rx what it receives.
type PipeStats struct {
	TxFrames  uint64            `json:"tx_frames"`
	TxBytes   uint64            `json:"tx_bytes"`
	RxFrames  uint64            `json:"rx_frames"`
	RxBytes   uint64            `json:"rx_bytes"`
	TxBlocked uint64            `json:"tx_blocked"`
	BadDescs  uint64            `json:"bad_descs"`
	Attaches  uint64            `json:"attaches"`
	Detaches  uint64            `json:"detaches"`
	Dropped   map[string]uint64 `json:"dropped"` // by reason
}

// Master is a thread that moves frames.
type Master struct {
	Master int    `json:"master"`
	Turns  uint64 `json:"turns"`
	Frames uint64 `json:"frames"`
	Sleeps uint64 `json:"sleeps"`
}

// NIC is the port that the daemon has to the outside.
type NIC struct {
	Kind                string `json:"kind"`
	Name                string `json:"name"`
	MAC                 string `json:"mac"`
	MTU                 int    `json:"mtu"`
	RxQueues            int    `json:"rx_queues"`
	SegmentsInHardware  bool   `json:"segments_in_hardware"`
	ChecksumsInHardware bool   `json:"checksums_in_hardware"`
	RxFrames            uint64 `json:"rx_frames"`
	RxBytes             uint64 `json:"rx_bytes"`
	TxFrames            uint64 `json:"tx_frames"`
	TxBytes             uint64 `json:"tx_bytes"`
	RxMissed            uint64 `json:"rx_missed"`
	RxBadChecksum       uint64 `json:"rx_bad_checksum"`
	RxNotOurs           uint64 `json:"rx_not_ours"`
	TxNoMemory          uint64 `json:"tx_no_memory"`
}

// Info is what a daemon says about itself.
type Info struct {
	PID           int    `json:"pid"`
	LayoutVersion int    `json:"layout_version"`
	Masters       int    `json:"masters"`
	Wait          string `json:"wait"`
	Pipes         int    `json:"pipes"`
	User          int    `json:"user"`
	NIC           *NIC   `json:"nic"` // nil without one
}

// Stats are all counters.
type Stats struct {
	Pipes   []Pipe   `json:"pipes"`
	Masters []Master `json:"masters"`
	NIC     *NIC     `json:"nic"`
}
