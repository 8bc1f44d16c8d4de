// Package claims knows which ResourceClaims of a cluster hold which devices: those of Trainyard and those of others.
package claims
