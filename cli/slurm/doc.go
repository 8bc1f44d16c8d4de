// Package slurm has the words of Slurm's users: squeue, scancel, scontrol, sacct, sinfo and srun, and what links them
// to this program.
package slurm
