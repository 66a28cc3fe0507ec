// Runs cert-manager's webhook, with a certificate of an authority of its own, as its chart does. cert-manager's own
// program is in a Go module of its own, which the module proxy does not have.
package main

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/cert-manager/cert-manager/internal/apis/config/shared"
	config "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

const week = 7 * 24 * time.Hour

func port(variable string) int32 {
	number, err := strconv.ParseInt(os.Getenv(variable), 10, 32)
	utilruntime.Must(err)
	return int32(number)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := logf.Log.WithName("webhook")
	server, err := webhook.NewCertManagerWebhookServer(log, config.WebhookConfiguration{
		KubeConfig:           os.Getenv("KUBECONFIG"),
		SecurePort:           port("PORT"),
		HealthzPort:          port("HEALTH_PORT"),
		MetricsListenAddress: "0",
		TLSConfig: shared.TLSConfig{Dynamic: shared.DynamicServingConfig{
			SecretNamespace: os.Getenv("NAMESPACE"),
			SecretName:      "cert-manager-webhook-ca",
			DNSNames:        []string{"localhost"},
			LeafDuration:    week,
		}},
	})
	utilruntime.Must(err)
	utilruntime.Must(server.Run(logf.NewContext(ctx, log)))
}
