// Command proxy is the HTTP proxy that stands for the Services of a cluster without a pod network.
//
// Every process gets its address as HTTP_PROXY, kube-apiserver as HTTPS_PROXY. A request for a routed host is
// forwarded to a loopback address, a CONNECT request is tunnelled there; other hosts get 502. Requests to the proxy
// itself: PUT adds routes ({"<host>[:<port>]": "<address>"}; `*` matches any text of a host). GET returns what is under
// way: {"inFlight": …, "finished": …}, the numbers of forwarded requests, and "refused", the deliveries whose last answer
// calls for another attempt ({"event": …, "host": …, "path": …, "attempts": …}). DELETE forgets the refused ones. Each
// forwarded request is logged as one JSON line.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

type proxy struct {
	mutex    sync.Mutex
	routes   map[string]string
	inFlight int
	finished int
	refused  map[delivery]int // attempts so far
	lines    *json.Encoder
	reverse  *httputil.ReverseProxy
}

// delivery is one event to one address.
type delivery struct {
	Event string `json:"event"`
	Host  string `json:"host"`
	Path  string `json:"path"`
}

type attempts struct {
	delivery
	Attempts int `json:"attempts"`
}

type state struct {
	InFlight int        `json:"inFlight"`
	Finished int        `json:"finished"`
	Refused  []attempts `json:"refused"`
}

type line struct {
	At      time.Time `json:"at"`
	Host    string    `json:"host"`
	Path    string    `json:"path"`
	Event   string    `json:"event"`
	Type    string    `json:"type"`
	Status  int       `json:"status"`
	Seconds float64   `json:"seconds"`
}

// statusRecorder remembers the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (recorder *statusRecorder) WriteHeader(status int) {
	recorder.status = status
	recorder.ResponseWriter.WriteHeader(status)
}

func (recorder *statusRecorder) Unwrap() http.ResponseWriter { return recorder.ResponseWriter }

func main() {
	listen := flag.String("listen", "", "address on loopback")
	flag.Parse()
	handler := &proxy{
		routes:  map[string]string{},
		refused: map[delivery]int{},
		lines:   json.NewEncoder(os.Stdout),
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}
	handler.reverse = &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			address := handler.address(request.In.Host, "80")
			request.SetURL(&url.URL{Scheme: "http", Host: address})
			request.Out.Host = request.In.Host // the dispatcher finds its channel by it
		},
		Transport: transport,
	}
	server := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: time.Minute}
	log.Fatal(server.ListenAndServe())
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.IsAbs():
		p.forward(w, r)
	case r.Method == http.MethodPut:
		p.addRoutes(w, r)
	case r.Method == http.MethodDelete:
		p.mutex.Lock()
		defer p.mutex.Unlock()
		clear(p.refused)
	default:
		_ = json.NewEncoder(w).Encode(p.state())
	}
}

func (p *proxy) state() state {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := state{p.inFlight, p.finished, []attempts{}}
	for refused, number := range p.refused {
		now.Refused = append(now.Refused, attempts{refused, number})
	}
	return now
}

func (p *proxy) addRoutes(w http.ResponseWriter, r *http.Request) {
	added := map[string]string{}
	if err := json.NewDecoder(r.Body).Decode(&added); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for host, address := range added {
		p.routes[withPort(host, "80")] = address
	}
}

func (p *proxy) forward(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	p.begin()
	recorder := &statusRecorder{w, http.StatusOK}
	defer func() {
		p.end(line{began, r.Host, r.URL.Path, r.Header.Get("ce-id"), r.Header.Get("ce-type"), recorder.status,
			time.Since(began).Seconds()})
	}()
	if p.address(r.Host, "80") == "" {
		http.Error(recorder, "no Service "+r.Host, http.StatusBadGateway)
		return
	}
	p.reverse.ServeHTTP(recorder, r)
}

func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := net.Dial("tcp", p.address(r.Host, "443"))
	if err != nil {
		http.Error(w, "no Service "+r.Host, http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		target.Close()
		return
	}
	_, _ = client.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	go func() { _, _ = io.Copy(target, buffered); target.Close() }()
	_, _ = io.Copy(client, target)
	client.Close()
}

// address returns where a host is routed to; empty for an unknown one.
func (p *proxy) address(host, port string) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	host = withPort(host, port)
	if address, known := p.routes[host]; known {
		return address
	}
	for pattern, address := range p.routes {
		if matches, _ := path.Match(pattern, host); matches {
			return address
		}
	}
	return ""
}

func (p *proxy) begin() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.inFlight++
}

func (p *proxy) end(entry line) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.inFlight--
	p.finished++
	to := delivery{entry.Event, entry.Host, entry.Path}
	if isRetried(entry.Status) {
		p.refused[to]++
	} else {
		delete(p.refused, to)
	}
	_ = p.lines.Encode(entry)
}

// isRetried is the rule of a trigger's delivery: knative.dev/eventing v0.47.0, pkg/kncloudevents/retries.go.
func isRetried(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

func withPort(host, port string) string {
	if strings.Contains(host, ":") {
		return host
	}
	return host + ":" + port
}
