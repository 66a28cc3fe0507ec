import { type Authority, type Certificate, type IssueOptions, issueSelfSigned, issueServing } from "./issue.ts";
import { renewalReason } from "./validity.ts";

/** Returns `served` while it is good for the hosts, or else a new serving certificate. Without an authority it is self-signed. */
export async function currentServing(
  served: Certificate | undefined,
  { authority, hosts, ...issue }: IssueOptions & { readonly authority?: Authority; readonly hosts: readonly string[] },
): Promise<Certificate> {
  const signedBy = authority === undefined ? {} : { authority: authority.cert };
  const isGood =
    served !== undefined && renewalReason(served.cert, { now: issue.now, hosts, ...signedBy }) === undefined;
  if (isGood) return served;
  return authority === undefined ? await issueSelfSigned(hosts, issue) : await issueServing(authority, hosts, issue);
}
