import { z } from "zod";
import { jsonOrNothing } from "../../api/json.ts";
import type { RequestIdentity } from "../../kube/credentials.ts";
import { Failure } from "../shared/failure.ts";

export interface ExecCredential {
  readonly apiVersion: string;
  readonly kind: "ExecCredential";
  readonly status: {
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
    /** RFC 3339. Absent: the client asks again after the API server has refused the credential. */
    readonly expirationTimestamp?: string;
  };
}

const BEARER = /^Bearer (.+)$/;
const claims = z.looseObject({ exp: z.number() });

/** Returns the identity as a plugin's answer. Throws `Failure` where no plugin can answer with it. `source` names its origin. */
export function execCredential(
  { authorization = "", cert, key, headers = {} }: RequestIdentity,
  { apiVersion, source }: { readonly apiVersion: string; readonly source: string },
): ExecCredential {
  const refuse = (problem: string): never => {
    const remedy = "use a token, a client certificate, an exec plugin or the pod's service account";
    throw new Failure("refused", { object: source, problem, remedy });
  };
  if (Object.keys(headers).length > 0) refuse("impersonates a user, which a credential plugin cannot pass on");
  const [, token] = BEARER.exec(authorization) ?? [];
  if (authorization !== "" && token === undefined) {
    refuse("has a user name and password, which a credential plugin cannot pass on");
  }
  if (token === undefined && (cert === undefined || key === undefined)) refuse("has no credential");
  const expires = token === undefined ? undefined : expiryOf(token);
  return {
    apiVersion,
    kind: "ExecCredential",
    status: {
      ...(token === undefined ? {} : { token }),
      ...(cert === undefined || key === undefined ? {} : { clientCertificateData: cert, clientKeyData: key }),
      ...(expires === undefined ? {} : { expirationTimestamp: expires }),
    },
  };
}

function expiryOf(token: string): string | undefined {
  const payload = Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8");
  const expires = new Date((claims.safeParse(jsonOrNothing(payload)).data?.exp ?? Number.NaN) * 1000);
  // Some issuers write a time that is none, such as milliseconds.
  return Number.isNaN(expires.getTime()) ? undefined : expires.toISOString();
}
