module github.com/cuporep/cuporep/examples/go

go 1.21

require github.com/cuporep/cuporep/go v0.0.0

replace github.com/cuporep/cuporep/go => ../../go
