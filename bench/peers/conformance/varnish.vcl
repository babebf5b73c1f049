# Varnish with its built-in VCL, and with parameters with which only the origin says how long a response is fresh, as in
# the suite's own configuration: `make conformance` fills in ${...} and starts `varnishd -F -j none -n FOLDER -a ADDRESS
# -f varnish.vcl -s malloc,64m -p default_ttl=0 -p default_grace=0 -p default_keep=3600`.
# https://varnish-cache.org/docs/7.7/reference/varnishd.html#default-ttl
vcl 4.1;

backend origin {
    .host = "${ORIGIN_HOST}";
    .port = "${ORIGIN_PORT}";
}
