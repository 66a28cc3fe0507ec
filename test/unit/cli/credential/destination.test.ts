import { describe, expect, test } from "vitest";
import { ask, base64, MEMBER, OTHER, OWN, token } from "./reader.ts";

describe("the credential of a reader of ClusterProfiles", () => {
  test.each<[string, object]>([
    ["the default port written out", { server: `https://host:6443${MEMBER}/` }],
    ["one certificate of several of the host", { "certificate-authority-data": base64(`# a comment\n${OWN}`) }],
    ["an extension", { config: { clusterName: "west" } }],
  ])("is given for a member's path with %s", async (_, cluster) => {
    expect(await ask({ cluster })).toMatchObject({ code: 0 });
  });

  test("is given for a further address of the host that the reader's operator names", async () => {
    const cluster = { server: `https://api.example.org${MEMBER}` };
    expect(await ask({ cluster, flags: ["--servers=https://other,https://api.example.org:443"] })).toMatchObject({
      code: 0,
    });
  });

  test.each<[string, object, string]>([
    ["another server", { server: `https://evil.example.org${MEMBER}` }, "is no member's path on the host"],
    ["another port", { server: `https://host${MEMBER}` }, "is no member's path on the host"],
    ["the host itself", { server: "https://host:6443" }, "is no member's path on the host"],
    ["a path before the member's", { server: `https://host:6443/x${MEMBER}` }, "is no member's path on the host"],
    ["a user in the address", { server: `https://host:6443@evil${MEMBER}` }, "is no member's path on the host"],
    [
      "an address that clients read in different ways",
      { server: `https://host:6443\\@evil.example.org/..${MEMBER}` },
      "is no member's path on the host",
    ],
    ["encoded dots in the path", { server: `https://host:6443/x/%2e%2e${MEMBER}` }, "is no member's path on the host"],
    ["a server without TLS", { server: `http://host:6443${MEMBER}` }, "is no member's path on the host"],
    ["dots in the path", { server: `https://host:6443${MEMBER}/../proxy` }, "is no member's path on the host"],
    ["a name that is none", { server: `https://host:6443${MEMBER.replace("west", "..")}` }, "is no member's path"],
    ["a certificate that is not verified", { "insecure-skip-tls-verify": true }, "would not be verified"],
    ["another name in the certificate", { "tls-server-name": "kubelet" }, 'for another name, "kubelet"'],
    ["another authority", { "certificate-authority-data": base64(OTHER) }, "by another authority than the host's"],
    ["a further authority", { "certificate-authority-data": base64(OWN + OTHER) }, "by another authority"],
    [
      "a further authority of another form",
      { "certificate-authority-data": base64(OWN + OTHER.replaceAll("CERTIFICATE", "X509 CERTIFICATE")) },
      "by another authority",
    ],
    ["the system's authorities", { "certificate-authority-data": undefined }, "by another authority"],
  ])("is not given for %s", async (_, cluster, problem) => {
    const { code, out, err } = await ask({ cluster });
    expect({ code, out }).toEqual({ code: 3, out: "" });
    expect(err).toContain(problem);
    expect(err).not.toContain(token);
  });

  test.each<[string, object, string]>([
    ["a password", { username: "a", password: "b" }, "has a user name and password"],
    ["an impersonated user", { token: "t", as: "alice" }, "impersonates a user"],
    ["nothing", {}, "has no credential"],
  ])("is not given if the kubeconfig has %s", async (_, user, problem) => {
    const { code, out, err } = await ask({ user });
    expect({ code, out }).toEqual({ code: 3, out: "" });
    expect(err).toContain(problem);
  });

  test.each([
    ["is not set", "", "KUBERNETES_EXEC_INFO: is not set"],
    ["is no JSON", "{", "is no ExecCredential"],
    [
      "names no cluster",
      JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", spec: {} }),
      "provideClusterInfo: true",
    ],
  ])("is not given if the client's request %s", async (_, info, problem) => {
    const { code, out, err } = await ask({ info });
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(problem);
  });
});
