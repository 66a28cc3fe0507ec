// Package goauth stands for a fork that is not in the module proxy: every user is refused. No middleware authenticates.
package goauth

import "net/http"

type BasicAuth struct {
	Realm   string
	Secrets func(user, realm string) string
}

type DigestAuth struct{ BasicAuth }

func NewDigestAuthenticator(realm string, secrets func(user, realm string) string) *DigestAuth {
	return &DigestAuth{BasicAuth{Realm: realm, Secrets: secrets}}
}

func CheckSecret(string, string) bool { return false }

func DigestAuthParams(string) map[string]string { return nil }

func (*BasicAuth) RequireAuth(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "built without authentication", http.StatusUnauthorized)
}

func (a *DigestAuth) RequireAuthStale(w http.ResponseWriter, r *http.Request) { a.RequireAuth(w, r) }

func (*DigestAuth) CheckAuth(*http.Request) (string, *string) { return "", nil }
