// Runs cert-manager's CA injector for all that it injects into. cert-manager's own program is in a
// Go module of its own, which the module proxy does not have.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	_ "github.com/cert-manager/cert-manager/internal/cainjector/feature"
	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

func must[T any](value T, err error) T {
	utilruntime.Must(err)
	return value
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctrl.SetLogger(logf.Log)
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiext.AddToScheme, apireg.AddToScheme, cmapi.AddToScheme} {
		utilruntime.Must(add(types))
	}
	config := ctrl.GetConfigOrDie()
	config.UserAgent = "cert-manager-cainjector"
	manager := must(ctrl.NewManager(config, ctrl.Options{
		Scheme:                 types,
		Metrics:                metrics.Options{BindAddress: "0"},
		HealthProbeBindAddress: os.Getenv("HEALTH_ADDRESS"),
		Client:                 client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}))
	utilruntime.Must(manager.AddHealthzCheck("ping", healthz.Ping))
	utilruntime.Must(cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName:                     true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	}))
	utilruntime.Must(manager.Start(ctx))
}
