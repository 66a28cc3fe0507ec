// A client of a cluster by client-go: lists, watches by informer, applies, creates, reads logs and deletes. Prints what it sees.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const usage = "usage: client-go KUBECONFIG NAMESPACE CONTENT-TYPE"

func main() {
	if len(os.Args) != 4 {
		fail(errors.New(usage))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func run(ctx context.Context, kubeconfig, namespace, contentType string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = contentType
	config.AcceptContentTypes = contentType + ",application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	listed, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	fmt.Printf("listed %d pods\n", len(listed.Items))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	configMaps, err := informed(factory.Core().V1().ConfigMaps().Informer())
	if err != nil {
		return err
	}
	pods, err := informed(factory.Core().V1().Pods().Informer())
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for informer, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v has not synced", informer)
		}
	}
	fmt.Println("informers synced")
	if err := applied(ctx, client, namespace, configMaps); err != nil {
		return err
	}
	return ran(ctx, client, namespace, pods)
}

// applied writes a ConfigMap by server-side apply, twice, and deletes it. The informer must see each.
func applied(ctx context.Context, client kubernetes.Interface, namespace string, seen <-chan event) error {
	own := client.CoreV1().ConfigMaps(namespace)
	for _, word := range []string{"first", "second"} {
		wanted := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"word": word})
		made, err := own.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "door"})
		if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		fmt.Printf("applied by %s: %s\n", made.ManagedFields[0].Manager, made.Data["word"])
		_, err = await(ctx, seen, func(e event) bool {
			found, ok := e.object.(*corev1.ConfigMap)
			return ok && found.Name == "applied" && found.Data["word"] == word
		})
		if err != nil {
			return fmt.Errorf("informer of ConfigMaps: %w", err)
		}
	}
	if err := own.Delete(ctx, "applied", metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	_, err := await(ctx, seen, func(e event) bool {
		found, ok := e.object.(*corev1.ConfigMap)
		return ok && e.kind == "deleted" && found.Name == "applied"
	})
	if err != nil {
		return fmt.Errorf("informer of ConfigMaps: %w", err)
	}
	fmt.Println("informer saw all changes")
	return nil
}

// ran creates a pod, waits by informer until it has ended, reads its log by a stream and deletes it.
func ran(ctx context.Context, client kubernetes.Interface, namespace string, seen <-chan event) error {
	var grace int64
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "talker"},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name:    "main",
				Image:   "localhost/busybox:1",
				Command: []string{"sh", "-c", "for n in 1 2 3; do echo line $n; done"},
			}},
		},
	}
	own := client.CoreV1().Pods(namespace)
	if _, err := own.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	ended, err := await(ctx, seen, func(e event) bool {
		found, ok := e.object.(*corev1.Pod)
		return ok && (found.Status.Phase == corev1.PodSucceeded || found.Status.Phase == corev1.PodFailed)
	})
	if err != nil {
		return fmt.Errorf("informer of pods: %w", err)
	}
	fmt.Printf("pod ended: %s\n", ended.object.(*corev1.Pod).Status.Phase)
	log, err := own.GetLogs("talker", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	fmt.Printf("log: %s\n", strings.Join(strings.Fields(string(text)), " "))
	if err := own.Delete(ctx, "talker", metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if _, err := await(ctx, seen, func(e event) bool { return e.kind == "deleted" }); err != nil {
		return fmt.Errorf("informer of pods: %w", err)
	}
	fmt.Println("pod deleted")
	return nil
}

// event is what an informer has told of an object.
type event struct {
	kind   string
	object runtime.Object
}

func informed(informer cache.SharedIndexInformer) (<-chan event, error) {
	seen := make(chan event, 1000)
	tell := func(kind string, object any) {
		if found, ok := object.(runtime.Object); ok {
			seen <- event{kind, found}
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("added", object) },
		UpdateFunc: func(_, object any) { tell("updated", object) },
		DeleteFunc: func(object any) { tell("deleted", object) },
	})
	return seen, err
}

func await(ctx context.Context, seen <-chan event, wanted func(event) bool) (event, error) {
	for {
		select {
		case next := <-seen:
			if wanted(next) {
				return next, nil
			}
		case <-ctx.Done():
			return event{}, ctx.Err()
		}
	}
}
