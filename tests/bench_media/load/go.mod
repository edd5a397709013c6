module load

go 1.19
