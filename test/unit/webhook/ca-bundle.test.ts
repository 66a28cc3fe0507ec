import { expect, test } from "vitest";
import {
  CONFIGURATIONS,
  ensureCaBundle,
  type WebhookConfiguration,
  type WebhookEntry,
} from "../../../webhook/ca-bundle.ts";
import { MemoryCluster } from "../../support/api-server/memory-cluster.ts";

const { signal } = new AbortController();
const SERVICE = { service: { namespace: "legation-system", name: "legation-webhook" } };

function entry(name: string, clientConfig: WebhookEntry["clientConfig"] = SERVICE): WebhookEntry {
  return { name: `${name}.legation.dev`, clientConfig };
}

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

/** A host with these entries in each configuration. */
function installed(...webhooks: readonly WebhookEntry[]): MemoryCluster {
  const host = new MemoryCluster("host", "host");
  for (const { resource, name } of CONFIGURATIONS) host.put(resource, { metadata: { name }, webhooks });
  return host;
}

function bundlesOf(host: MemoryCluster): (string | undefined)[][] {
  return CONFIGURATIONS.map(({ resource, name }) => {
    const { webhooks = [] } = host.peek<WebhookConfiguration>(resource, { name }) ?? {};
    return webhooks.map(({ clientConfig: { caBundle } }) => caBundle && Buffer.from(caBundle, "base64").toString());
  });
}

test("trusts the authority in every entry, by another bundle in the second call", async () => {
  const host = installed(entry("pods"), entry("pods-again"));
  const trust = (): string => "ours\n";
  expect(await ensureCaBundle(host.client, trust, signal)).toEqual({
    installed: true,
    hosts: ["legation-webhook.legation-system.svc"],
  });
  expect(bundlesOf(host)).toEqual(CONFIGURATIONS.map(() => ["ours\n", "ours\n\n"]));
  const { version } = host;
  await ensureCaBundle(host.client, trust, signal);
  expect(host.version).toBe(version);
});

test("writes nothing where the second call's bundle differs from the first one's by its empty line alone", async () => {
  const host = installed(entry("pods-again", { ...SERVICE, caBundle: base64("theirs\n\n") }));
  const { version } = host;
  await ensureCaBundle(host.client, (trusted) => trusted.trimEnd() + "\n", signal);
  expect(host.version).toBe(version);
});

test("keeps what another replica wrote meanwhile, and the target of each entry", async () => {
  const host = installed(entry("pods"));
  const [first] = CONFIGURATIONS;
  let calls = 0;
  const trust = (trusted: string): string => {
    calls += 1;
    const theirs = {
      metadata: { name: first?.name ?? "" },
      webhooks: [entry("pods", { ...SERVICE, caBundle: base64("theirs\n") })],
    };
    // Another replica writes between this one's read and its write.
    if (calls === 1 && first !== undefined) host.put(first.resource, theirs);
    return trusted.includes("ours") ? trusted : `${trusted}ours\n`;
  };
  await ensureCaBundle(host.client, trust, signal);
  expect(bundlesOf(host)[0]).toEqual(["theirs\nours\n"]);
  expect(first && host.find(first.resource, { name: first.name })).toMatchObject({
    webhooks: [{ clientConfig: SERVICE }],
  });
});

test("writes nothing without an authority of its own, which is cert-manager's then", async () => {
  const host = installed(entry("pods"));
  const { version } = host;
  expect((await ensureCaBundle(host.client, undefined, signal)).installed).toBe(true);
  expect(host.version).toBe(version);
});

test.each([
  ["a Service", SERVICE, ["legation-webhook.legation-system.svc"]],
  ["a name", { url: "https://webhook.example:8443/pods" }, ["webhook.example"]],
  ["an IPv6 address", { url: "https://[fd00::1]:8443/pods" }, ["fd00::1"]],
  ["nothing that can be read", { url: "webhook" }, []],
])("names the hosts that the certificate is for, of an entry with %s", async (_, target, hosts) => {
  expect((await ensureCaBundle(installed(entry("pods", target)).client, undefined, signal)).hosts).toEqual(hosts);
});

test("says that no configuration is installed yet", async () => {
  const host = new MemoryCluster("host", "host");
  expect(await ensureCaBundle(host.client, () => "ours\n", signal)).toEqual({ installed: false, hosts: [] });
});
