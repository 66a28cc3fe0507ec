import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { Pod } from "../../../src/api/kubernetes.ts";

/** Bytes of the file `/large`. */
export const LARGE: number = 32 * 2 ** 20;

/** Ports of a Service that selects `webPod`s. */
export const WEB_PORTS = [
  { name: "http", port: 80, targetPort: "http" },
  { name: "echo", port: 9000 },
  { name: "late", port: 9001 },
  { name: "slow", port: 9002 },
] as const;

/** The port `slow` reads so many bytes, after a minute and a half. */
export const SLOWLY_READ: number = 24 * 2 ** 20;

// A web server with a large file and a script that tells the digest of what it was sent, one that echoes, one that is slow to answer,
// and one that is slow to read.
const SCRIPT = `mkdir -p /www/cgi-bin && cd /www && hostname > name
dd if=/dev/urandom of=large bs=1048576 count=32 2>/dev/null && sha256sum < large > sum
printf '#!/bin/sh\\nprintf "Content-Type: text/plain\\\\r\\\\n\\\\r\\\\n"; head -c $CONTENT_LENGTH | sha256sum\\n' > cgi-bin/sum
chmod +x cgi-bin/sum
httpd -p 8080 -h /www
nc -ll -p 9000 -e cat &
nc -ll -p 9001 -e sh -c 'read line; sleep 3; echo late' &
nc -ll -p 9002 -e sh -c 'sleep 90; head -c ${SLOWLY_READ} | sha256sum' &
trap 'exit 0' TERM; sleep 3600 & wait`;

/** A pod that serves HTTP on 8080, echoes on 9000, answers a line after three seconds on 9001, and reads late on 9002. */
export function webPod(namespace: string, name: string): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name, labels: { app: "web" } },
    spec: {
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: [
        {
          name: "main",
          image: "localhost/busybox:1",
          command: ["sh", "-c", SCRIPT],
          ports: [{ name: "http", containerPort: 8080 }],
          readinessProbe: { httpGet: { path: "/sum", port: 8080 }, periodSeconds: 1 },
        },
      ],
    },
  };
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Asks a web server on a connection of its own. */
export function ask(port: number, path: string, body?: Buffer, host = "127.0.0.1"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host, port, path, agent: false, method: body === undefined ? "GET" : "POST" },
      (response) => {
        text(response).then((read) => resolve({ status: response.statusCode ?? 0, text: read }), reject);
      },
    );
    asked.on("error", reject);
    if (body !== undefined) asked.setHeader("content-length", body.length);
    asked.end(body);
  });
}

/** Opens a TCP connection, whose directions end apart. */
export async function open(port: number, host = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host, allowHalfOpen: true });
  await once(socket, "connect");
  // A reset at the end of a test is none of its own.
  socket.on("error", () => {});
  return socket;
}
