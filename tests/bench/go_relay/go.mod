module go_relay

go 1.19
