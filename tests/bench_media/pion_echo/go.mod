module pion_echo

go 1.19
