// Certificates of the server. Knows nothing of what is served.

package serving

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// TLS makes the configuration of a server. Without a directory the certificate is one of its own, made anew
// at each start: proxies then encrypt, and do not verify. With one it holds tls.crt and tls.key, which are
// read again when they have changed. With a file of authorities, clients need a certificate of theirs.
func TLS(directory, clientAuthorities string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	if directory == "" {
		certificate, err := selfSigned()
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{certificate}
	} else {
		pair := &files{certificate: filepath.Join(directory, "tls.crt"), key: filepath.Join(directory, "tls.key")}
		if _, err := pair.get(nil); err != nil {
			return nil, err
		}
		config.GetCertificate = pair.get
	}
	if clientAuthorities != "" {
		text, err := os.ReadFile(clientAuthorities)
		if err != nil {
			return nil, err
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in PEM", clientAuthorities)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "pickd-extproc"},
		DNSNames:              []string{"localhost"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// files are a certificate and its key, read again when the certificate's file is another.
type files struct {
	certificate, key string

	mutex   sync.Mutex
	read    *tls.Certificate
	changed time.Time
}

func (f *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	about, err := os.Stat(f.certificate)
	if err == nil && f.read != nil && about.ModTime().Equal(f.changed) {
		return f.read, nil
	}
	pair, pairErr := tls.LoadX509KeyPair(f.certificate, f.key)
	if err := errors.Join(err, pairErr); err != nil {
		if f.read != nil {
			return f.read, nil // half written: the next handshake looks again
		}
		return nil, err
	}
	f.read, f.changed = &pair, about.ModTime()
	return f.read, nil
}
