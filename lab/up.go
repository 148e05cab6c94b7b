package lab

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Up makes a lab and returns when packets can cross it. What a killed Up left under the same name is removed first.
// If it fails or ctx ends, nothing remains. It fails with ErrInvalid, ErrExists, ErrBusy, or with an error that is
// os.ErrPermission for want of CAP_NET_ADMIN and CAP_SYS_ADMIN.
func Up(ctx context.Context, options Options) (*Lab, error) {
	options = options.withDefaults()
	if err := options.Check(); err != nil {
		return nil, err
	}
	lock, err := lockLab(options.Name)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	st, err := readState(options.Name)
	if err == nil && st.Phase == phaseUp {
		return nil, fmt.Errorf("lab %q %w", options.Name, ErrExists)
	}
	if _, err := tearDown(options.Name, st); err != nil {
		return nil, fmt.Errorf("removing what was left of lab %q: %w", options.Name, err)
	}

	l := &Lab{options: options, created: time.Now().UTC().Truncate(time.Second)}
	st = &state{Phase: phaseCreating, Created: l.created, Options: options}
	for _, host := range l.Hosts() {
		st.Namespaces = append(st.Namespaces, l.NetNSName(host))
	}
	// Before the first thing exists: whoever finds the file knows what to remove.
	err = writeState(st)
	if err == nil {
		err = build(ctx, l, st)
	}
	if err == nil {
		st.Phase = phaseUp
		err = writeState(st)
	}
	if err != nil {
		err = fmt.Errorf("building lab %q: %w", options.Name, err)
		_, cleanup := tearDown(options.Name, st)
		if cleanup == nil {
			lock.remove()
		}
		return nil, errors.Join(err, cleanup)
	}
	return l, nil
}
