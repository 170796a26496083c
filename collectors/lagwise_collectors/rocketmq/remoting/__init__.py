"""A client of RocketMQ's remoting protocol: frames, connections, requests and the parsing of their responses."""
