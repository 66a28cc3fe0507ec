import { expect, test } from "vitest";
import { memberKubeconfig } from "../../../src/clusters/kubeconfig.ts";
import { credentialsFromKubeconfigText } from "../../../src/kube/kubeconfig.ts";

const CA = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

test("builds a kubeconfig that the controller accepts, with token and certificate authority", async () => {
  const text = memberKubeconfig({
    cluster: "west",
    server: "https://10.0.0.1:6443",
    certificateAuthority: CA,
    skipsTlsVerify: false,
    tlsServerName: "kubernetes",
    proxyUrl: "http://proxy.example:3128",
    token: "t0ken",
  });
  const credentials = credentialsFromKubeconfigText(text, { allowExec: false, env: {} });
  expect(credentials).toMatchObject({
    server: "https://10.0.0.1:6443",
    clusterName: "west",
    tlsServerName: "kubernetes",
    proxyUrl: "http://proxy.example:3128",
    insecureSkipTlsVerify: false,
  });
  expect(await credentials.identity()).toMatchObject({ authorization: "Bearer t0ken", ca: CA });
});

test("leaves out the certificate authority of a member that the system's roots vouch for", async () => {
  const text = memberKubeconfig({ cluster: "west", server: "https://h", skipsTlsVerify: false, token: "t" });
  expect(text).not.toContain("certificate-authority");
  expect(text).not.toContain("insecure");
});

test("keeps insecure-skip-tls-verify", () => {
  const text = memberKubeconfig({ cluster: "west", server: "https://h", skipsTlsVerify: true, token: "t" });
  expect(credentialsFromKubeconfigText(text, { allowExec: false, env: {} }).insecureSkipTlsVerify).toBe(true);
});
