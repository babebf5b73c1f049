# Varnish with its defaults: the built-in VCL coalesces misses of one object. The bench fills in ${...} and starts
# `varnishd -F -j none -n FOLDER -a ADDRESS -f varnish.vcl -s malloc,256m -p feature=+http2`; all other parameters
# have Varnish's defaults.
# https://varnish-cache.org/docs/7.7/users-guide/vcl-hashing.html
vcl 4.1;

backend origin {
    .host = "${ORIGIN_HOST}";
    .port = "${ORIGIN_PORT}";
}
