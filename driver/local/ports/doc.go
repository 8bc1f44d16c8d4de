// Package ports leases the ports at which the processes of an attempt meet, so that two jobs of a machine never meet at
// one, whoever serves them.
//
// A lease is of a block: Count ports in a row, the first a multiple of Count. Its lock is a socket in the abstract
// namespace of Unix sockets, whose name says which block it is. That namespace is the one of the machine's ports, in
// containers too; it has no files that another user could make, remove or change; and the kernel ends the lock with the
// last process that has it open. The driver takes a lease and gives it to the shim of the attempt, which has it until
// it ends, whatever becomes of the driver.
package ports
