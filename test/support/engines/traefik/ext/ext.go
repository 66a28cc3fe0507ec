// Package ext stands for the extension points of Traefik's configuration, a module of its repository that Traefik's own leaves out.
package ext

type HTTP struct{}

type Router struct{}
