# A thousand jobs that wait for an hour: those of the plays have numbers behind theirs.
sbatch --begin=now+1hour --array=0-999 --wrap true
