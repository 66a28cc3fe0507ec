import { expect, test } from "vitest";
import { SignIn } from "../../../../src/cli/ui/sign-in.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { viewerOf } from "./viewer.ts";

const PORT = 8080;
const rest = { route: "other", from: "127.0.0.1", port: PORT } as const;
const viewer = viewerOf(fakeClient({}));
const local = { host: "127.0.0.1:8080" };

/** Returns the cookie that the browser sends after it has opened the address. */
function signedIn(signIn: SignIn): string {
  const admission = signIn.admit({ url: signIn.path, headers: local, ...rest });
  if (admission.kind !== "signIn") throw new Error("was not signed in");
  expect(admission.cookie).toMatch(/; Path=\/; HttpOnly; SameSite=Strict$/);
  return admission.cookie.split(";", 1)[0] ?? "";
}

test("signs in the first browser that opens the address, and no second one", () => {
  const signIn = new SignIn(viewer);
  const cookie = signedIn(signIn);
  expect(signIn.admit({ url: "/", headers: { ...local, cookie }, ...rest })).toEqual({
    kind: "allowed",
    viewer,
  });
  expect(signIn.admit({ url: signIn.path, headers: local, ...rest })).toMatchObject({
    kind: "refused",
    status: 401,
  });
});

test.each([
  ["no cookie", "/", {}],
  ["a wrong cookie", "/api/live", { cookie: "legation-ui-8080=wrong" }],
  ["the cookie of another server", "/", { cookie: "legation-ui-9090=x" }],
  ["a wrong token", "/?token=wrong", {}],
  ["a path that is no URL", "//", {}],
])("refuses a request with %s", (_, url, headers) => {
  const signIn = new SignIn(viewer);
  expect(signIn.admit({ url, headers: { ...local, ...headers }, ...rest })).toMatchObject({
    kind: "refused",
    status: 401,
  });
});

test.each([
  ["a page of another origin", { origin: "http://evil.example" }],
  ["another port of this machine", { origin: "http://127.0.0.1:9999" }],
  ["a page of another site", { "sec-fetch-site": "cross-site" }],
  ["another site's name for this machine (DNS rebinding)", { host: "evil.example:8080" }],
  ["no host", { host: undefined }],
])("refuses a signed-in browser's request from %s", (_, headers) => {
  const signIn = new SignIn(viewer);
  const cookie = signedIn(signIn);
  const request = { url: "/api/live", headers: { ...local, cookie, ...headers }, ...rest };
  expect(signIn.admit(request)).toMatchObject({ kind: "refused", status: 403 });
});

test("does not spend the token on a wrong one", () => {
  const signIn = new SignIn(viewer);
  signIn.admit({ url: "/?token=guess", headers: local, ...rest });
  expect(signedIn(signIn)).toMatch(/^legation-ui-8080=/);
});
