module github.com/pickd/pickd/bindings/go

go 1.24
