import { expect, test } from "vitest";
import type { ConfigMap, Stored } from "../../../src/api/kubernetes.ts";
import type { WatchEvent, WatchOptions } from "../../../src/kube/client.ts";
import { PublishedAuthentication } from "../../../src/serving/published-authentication.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { Authority } from "../../support/clusters/pki.ts";

function published(version: number, pem: string): Stored<ConfigMap> {
  return {
    metadata: {
      namespace: "kube-system",
      name: "extension-apiserver-authentication",
      uid: "published",
      resourceVersion: String(version),
    },
    data: { "client-ca-file": pem },
  };
}

test("trusts the client authorities that the host publishes now, and keeps the last ones while they cannot be read", async () => {
  const [first, second] = await Promise.all([Authority.create("first"), Authority.create("second")]);
  const events: [WatchEvent<ConfigMap>["type"], string, string | undefined][] = [
    ["MODIFIED", second.pem, second.pem],
    ["MODIFIED", "-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n", second.pem],
    ["MODIFIED", " ", undefined],
    ["MODIFIED", first.pem, first.pem],
    ["DELETED", first.pem, undefined],
  ];
  const told: (string | undefined)[] = [];
  const authority: PublishedAuthentication = new PublishedAuthentication({
    host: fakeClient({
      list: async () => ({ items: [published(1, first.pem)], resourceVersion: "1", size: 0 }),
      watch: async function* (_resource: unknown, { onOpen }: WatchOptions) {
        onOpen?.();
        for (const [index, [type, pem]] of events.entries()) {
          yield { type, object: published(index + 2, pem), size: 0 };
        }
        await new Promise(() => {});
      },
    }),
    clock: new FakeClock(),
    log: createLogger({ level: "silent" }),
    onChange: () => told.push(authority.clientAuthority),
  });
  await authority.start(new AbortController().signal);
  await expect.poll(() => told).toEqual([first.pem, ...events.map(([, , pem]) => pem)]);
});
