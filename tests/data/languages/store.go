package store

import (
	"errors"
	"fmt"
)

// ErrMissing says that it's not there (or no longer).
var ErrMissing = errors.New("missing :(")

type Store struct {
	items map[string][]int
}

func (s *Store) Get(key string) ([]int, error) {
	if key == "" {
		return nil, ErrMissing
	}
	items, ok := s.items[key]
	if !ok {
		return nil, ErrMissing
	}
	return items, nil
}

func (s *Store) Sum(keys ...string) (int, error) {
	total := 0
	for _, key := range keys {
		items, err := s.Get(key)
		if err != nil {
			return 0, err
		}
		for _, item := range items {
			total += item
		}
	}
	return total, nil
}

func table() []struct{ in, out string } {
	return []struct{ in, out string }{
		{"a", "b"},
		{"c", "d"},
		{`(`, `"`},
	}
}

func (s *Store) Each(f func(string, []int) error) error {
	for key, items := range s.items {
		if err := f(key, items); err != nil {
			return fmt.Errorf("each %q: %w", key, err)
		}
	}
	go func() {
		s.items = nil
	}()
	return nil
}
