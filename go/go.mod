module github.com/cuporep/cuporep/go

go 1.21
