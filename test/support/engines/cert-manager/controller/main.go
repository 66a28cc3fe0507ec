// Runs cert-manager's controllers for Issuers and Certificates. cert-manager's own program is in a
// Go module of its own, which the module proxy does not have.
package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

const workers = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := logf.Log.WithName("cert-manager")
	factory, err := controller.NewContextFactory(logf.NewContext(ctx, log), controller.ContextOptions{
		Kubeconfig: os.Getenv("KUBECONFIG"),
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		panic(err)
	}
	var running sync.WaitGroup
	for _, construct := range controller.Known() {
		each, err := construct(factory)
		if err != nil {
			panic(err)
		}
		running.Go(func() {
			if err := each.Run(workers, ctx); err != nil {
				panic(err)
			}
		})
	}
	shared, err := factory.Build()
	if err != nil {
		panic(err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	shared.SharedInformerFactory.WaitForCacheSync(ctx.Done())
	go func() {
		ready := func(http.ResponseWriter, *http.Request) {}
		panic(http.ListenAndServe(os.Getenv("HEALTH_ADDRESS"), http.HandlerFunc(ready)))
	}()
	running.Wait()
}
