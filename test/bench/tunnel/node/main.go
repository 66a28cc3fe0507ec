// Serves exec on a loopback port as a kubelet does, with the kubelet's own streaming code, and without a container
// runtime: a command is a number of bytes and a number of milliseconds, and writes the bytes over that time.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

const (
	idleTimeout           = 4 * time.Hour
	streamCreationTimeout = 30 * time.Second
	chunkBytes            = 32 * 1024
)

type zeros struct{}

func (zeros) ExecInContainer(_ context.Context, _, _, _ string, command []string, _ io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if len(command) != 2 {
		return fmt.Errorf("the command %q is not a number of bytes and one of milliseconds", command)
	}
	bytes, err := strconv.Atoi(command[0])
	if err != nil {
		return fmt.Errorf("the command does not begin with a number of bytes: %w", err)
	}
	milliseconds, err := strconv.Atoi(command[1])
	if err != nil {
		return fmt.Errorf("the command does not end with a number of milliseconds: %w", err)
	}
	begin, duration := time.Now(), time.Duration(milliseconds)*time.Millisecond
	chunk := make([]byte, chunkBytes)
	for sent := 0; sent < bytes; {
		written, err := out.Write(chunk[:min(bytes-sent, chunkBytes)])
		if err != nil {
			return err
		}
		sent += written
		time.Sleep(time.Until(begin.Add(duration * time.Duration(sent) / time.Duration(bytes))))
	}
	return nil
}

func exec(response http.ResponseWriter, request *http.Request) {
	options, err := remotecommand.NewOptions(request)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(response, request, zeros{}, request.PathValue("pod"), "", request.PathValue("container"),
		request.Form["command"], options, idleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

func main() {
	address := flag.String("listen", "", "HOST:PORT")
	cert := flag.String("cert", "", "file of the serving certificate")
	key := flag.String("key", "", "file of its key")
	flag.Parse()
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", exec)
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	server := http.Server{
		Addr:    *address,
		Handler: mux,
		// HTTP/2 has no upgrades.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	log.Fatal(server.ListenAndServeTLS(*cert, *key))
}
