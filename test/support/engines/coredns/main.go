// CoreDNS with the plugins of its own image that a cluster's Corefile needs: the others bring the clients of three clouds.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/rewrite"
)

func main() {
	// In the order of CoreDNS' own plugin.cfg.
	dnsserver.Directives = []string{"ready", "errors", "cache", "rewrite", "kubernetes"}
	coremain.Run()
}
