// Package attempts observes the attempts that are alive: whether their pods run, what keeps them from starting, how far
// they are, and how they end. A look at an attempt reports its start or its end, never both at a time, and says what is
// to be written because of it.
package attempts
