module github.com/trainyard/trainyard

go 1.26
