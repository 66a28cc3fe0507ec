import type { ClusterCredentials } from "../../../../src/kube/credentials.ts";
import { Authority, type KeyAndCertificate } from "../../../support/clusters/pki.ts";

export const authority: Authority = await Authority.create("test");

/** The certificate of a server at 127.0.0.1, which is also `api.example`. */
export const serving: KeyAndCertificate = await authority.issue({
  commonName: "api",
  usage: "serverAuth",
  dnsNames: ["api.example"],
  addresses: ["127.0.0.1"],
});

/** Users with a client certificate each. */
export const people: Readonly<Record<"jane" | "john", KeyAndCertificate>> = {
  jane: await authority.issue({ commonName: "jane", usage: "clientAuth" }),
  john: await authority.issue({ commonName: "john", usage: "clientAuth" }),
};

/** The certificate of a user, and the authority whose servers the user trusts. */
export function certificateOf(name: keyof typeof people): {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
} {
  return { ca: authority.pem, cert: people[name].certificate, key: people[name].key };
}

/** Credentials of jane for a server. */
export function credentialsFor(server: string, parts: Partial<ClusterCredentials> = {}): ClusterCredentials {
  const identity = () => certificateOf("jane");
  return { server, source: "test", insecureSkipTlsVerify: false, identity, refresh: () => {}, ...parts };
}
