module patterns

go 1.21
