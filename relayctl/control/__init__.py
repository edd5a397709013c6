"""The control process: netlink, sweep, metrics, HTTP; starts and watches the packet process."""
