// Package contexts keeps the hosts that a user works with under names of his own, in contexts.yaml in his configuration
// folder:
//
//	current: lab
//	contexts:
//	  - name: desk
//	    state: /home/ann/.local/state/trainyard
//	  - name: lab
//	    command: [ssh, lab, trainyard, connect]
//	  - name: team
//	    server: https://gpu.example.org:8443
//	    token_file: /home/ann/.config/trainyard/team.token
//	    ca: /home/ann/.config/trainyard/team.pem
//
// A context is of one kind: a state folder on this machine, a server on the network, or a command whose input and
// output are the connection. The file is replaced whole, is readable by its owner alone, and is refused where others
// may write it or its folder, since a command in it is run.
//
// The package deliberately opens no connection; package cli/client does.
package contexts
