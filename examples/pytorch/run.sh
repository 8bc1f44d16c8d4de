#!/bin/sh
# Runs train.py by torchrun, with a rank for each GPU or slot that Trainyard has given: run.sh [flags of train.py].
#
# exec, so that no shell stands between the job and its signals. The port is the one that Trainyard found free: with
# --standalone, torchrun before 2.1 takes 29400 always, and two jobs of one machine would share it (PyTorch 107734).
#
# Redirects and tee say that rank 9 writes where it likes, as all do: the 1.13 of Debian 12 fails on its own default, 0,
# which its Python 3.11 takes for nothing.
here=$(dirname "$0")
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" # a rank is a slot is a thread
export PYTHONDONTWRITEBYTECODE=1
exec "${PYTHON:-/usr/bin/python3}" -m torch.distributed.run \
	--nproc_per_node="${TRAINYARD_NUM_GPUS:-1}" \
	--master_addr="${MASTER_ADDR:-127.0.0.1}" --master_port="${MASTER_PORT:-29500}" \
	--max_restarts=0 --monitor_interval=0.5 --redirects=9:0 --tee=9:0 \
	"$here/train.py" "$@"
