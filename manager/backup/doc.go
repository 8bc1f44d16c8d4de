// Package backup is the file that keeps what a manager must have to go on elsewhere: its log, its tokens, and
// the environments and scripts of jobs that are not done.
//
// The file is lines of JSON, with the bytes of each part behind the line that announces it:
//
//	{"trainyard_backup":1,"made":"2026-11-27T10:00:00Z","version":"1.4"}
//	{"part":"trainyard.db","size":40960,"sha256":"..."}
//	40960 bytes
//	{"part":"tokens.json","size":311,"sha256":"..."}
//	311 bytes
//	{"part":"env/DIGEST","size":1200,"sha256":"..."}
//	1200 bytes
//	{"part":"snapshots/DIGEST/train.py","size":900,"sha256":"..."}
//	900 bytes
//	{"parts":4,"sha256":"..."}
//
// The last checksum is that of all bytes before its line. So a file that was cut, changed anywhere or goes on behind
// its end is refused.
package backup
