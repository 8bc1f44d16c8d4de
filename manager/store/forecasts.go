package store

import (
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// MostForecasts is how many forecasts are kept: the newest.
const MostForecasts = 100_000

// forecastTable is made once there is something to be kept: the log does not need it, nor does an older program.
const forecastTable = `create table if not exists forecasts (id integer primary key, at integer not null,
	job integer not null, system text not null, start10 integer not null, start50 integer not null,
	start90 integer not null, end10 integer not null, end50 integer not null, end90 integer not null,
	known integer not null)`

// Bits of the column known.
const (
	startUnknown = 1 << iota
	endUnknown
	startAlone
	endAlone
)

// KeepForecasts keeps forecasts that were given, all or none, and lets go of the oldest beyond MostForecasts. They are
// no part of the log: who has lost the folder to another manager keeps none. It may be called by any goroutine.
func (s *Store) KeepForecasts(list []explain.Foretold) error {
	tx, err := s.db.Begin()
	if err != nil {
		return fmt.Errorf("store: forecasts: %w", err)
	}
	_, err = tx.Exec(forecastTable)
	for i := range list {
		if err == nil {
			err = s.keepForecast(tx, &list[i])
		}
	}
	if err == nil {
		_, err = tx.Exec("delete from forecasts where id <= (select max(id) from forecasts) - ?", MostForecasts)
	}
	if err == nil {
		err = tx.Commit()
	} else {
		err = errors.Join(err, tx.Rollback())
	}
	if err != nil {
		return fmt.Errorf("store: forecasts: %w", err)
	}
	return nil
}

func (s *Store) keepForecast(tx *sql.Tx, f *explain.Foretold) error {
	known := 0
	for bit, set := range map[int]bool{startUnknown: f.Start.Unknown, endUnknown: f.End.Unknown,
		startAlone: f.Start.Alone, endAlone: f.End.Alone} {
		if set {
			known |= bit
		}
	}
	_, err := tx.Exec(`insert into forecasts (at, job, system, start10, start50, start90, end10, end50, end90, known)
		select ?, ?, ?, ?, ?, ?, ?, ?, ?, ? where (select cast(value as integer) from meta where name = 'epoch') = ?`,
		int64(f.At), int64(f.Job), f.System, int64(f.Start.P10), int64(f.Start.P50), int64(f.Start.P90),
		int64(f.End.P10), int64(f.End.P50), int64(f.End.P90), known, s.epoch)
	return err
}

// readAtOnce is how many forecasts are read before others may use the database.
const readAtOnce = 1000

// Forecasts returns those that are kept, the oldest first. What is decided meanwhile waits for a thousand of them at
// most. It may be called by any goroutine.
func (s *Store) Forecasts() (list []explain.Foretold, err error) {
	n := 0
	err = s.db.QueryRow("select count(*) from sqlite_master where name = 'forecasts'").Scan(&n)
	if err != nil || n == 0 {
		return nil, err
	}
	for last, more := int64(math.MinInt64), true; more; {
		was := len(list)
		if list, last, err = s.someForecasts(list, last); err != nil {
			return nil, fmt.Errorf("store: forecasts: %w", err)
		}
		more = len(list)-was == readAtOnce
	}
	return list, nil
}

// someForecasts appends those that were kept after one, and returns the number of the last of them.
func (s *Store) someForecasts(list []explain.Foretold, after int64) (_ []explain.Foretold, last int64, err error) {
	rows, err := s.db.Query("select id, at, job, system, start10, start50, start90, end10, end50, end90, known "+
		"from forecasts where id > ? order by id limit ?", after, readAtOnce)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var f explain.Foretold
		var at, job, known int64
		var q [6]int64
		if bad := rows.Scan(&last, &at, &job, &f.System, &q[0], &q[1], &q[2], &q[3], &q[4], &q[5],
			&known); bad != nil {
			return nil, 0, bad
		}
		f.At, f.Job = sched.Time(at), sched.JobID(job)
		f.Start = explain.Span{P10: sched.Time(q[0]), P50: sched.Time(q[1]), P90: sched.Time(q[2]),
			Unknown: known&startUnknown != 0, Alone: known&startAlone != 0}
		f.End = explain.Span{P10: sched.Time(q[3]), P50: sched.Time(q[4]), P90: sched.Time(q[5]),
			Unknown: known&endUnknown != 0, Alone: known&endAlone != 0}
		list = append(list, f)
	}
	return list, last, rows.Err()
}
