#!/usr/bin/env bash
# Makes the test vectors of this folder with the openssl command and POSIX tools, and with nothing of Payhooks.
#
#   test/vectors/make.sh [folder for the results, default: the folder of this script]
#
# Keys are made only where keys/ lacks them; everything else is a function of the keys and of this file, so a
# second run writes the same bytes. Every canonical string below is written out by hand: it states what the
# specification (Authentication, 4) says of the body next to it, and is not computed from it.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here}
keys=$here/keys
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$keys" "$out"

fail() { printf 'make.sh: %s\n' "$*" >&2; exit 1; }

# ---------------------------------------------------------------------------------------------------- bytes

hex_of() { od -An -v -tx1 "$1" | tr -d ' \n'; }
bytes_of() { printf '%b' "$(printf '%s' "$1" | sed 's/../\\x&/g')"; }
base64_of() { openssl base64 -A; }
repeat() { local i; for ((i = 0; i < $2; i++)); do printf '%s' "$1"; done; }

# A file's bytes as a JSON string; bytes from 0x80 on are UTF-8 and stay as they are.
json_of() {
  printf '"'
  od -An -v -tu1 "$1" | awk '{
    for (i = 1; i <= NF; i++) {
      b = $i + 0
      if (b == 34) printf "\\\""
      else if (b == 92) printf "\\\\"
      else if (b == 10) printf "\\n"
      else if (b == 13) printf "\\r"
      else if (b == 9) printf "\\t"
      else if (b < 32 || b == 127) printf "\\u%04x", b
      else printf "%c", b
    }
  }'
  printf '"'
}
json_text() {
  local text
  case $1 in
    *[[:cntrl:]]*) printf '%s' "$1" > "$work/text" && json_of "$work/text" ;;
    *) text=${1//\\/\\\\} && printf '"%s"' "${text//\"/\\\"}" ;;
  esac
}

# ----------------------------------------------------------------------------------------------------- keys

private_of() { printf '%s/%s.test-private.pem' "$keys" "$1"; }
public_of() { printf '%s/%s.public.pem' "$keys" "$1"; }

make_key() { # name, arguments of genpkey
  local name=$1 private
  shift
  private=$(private_of "$name")
  [ -s "$private" ] || openssl genpkey "$@" -out "$private" 2> /dev/null
  [ -s "$(public_of "$name")" ] || openssl pkey -in "$private" -pubout -out "$(public_of "$name")"
}

# The primary key's modulus with another public exponent: there is no private key to it.
make_public_with_exponent() { # name, exponent
  [ -s "$(public_of "$1")" ] && return
  local modulus
  modulus=$(openssl rsa -pubin -in "$(public_of primary)" -modulus -noout | sed 's/^Modulus=//')
  printf '%s\n' "asn1=SEQUENCE:spki" \
    "[spki]" "algorithm=SEQUENCE:algorithm" "key=BITWRAP,SEQUENCE:rsa" \
    "[algorithm]" "oid=OID:rsaEncryption" "parameters=NULL" \
    "[rsa]" "n=INTEGER:0x$modulus" "e=INTEGER:$2" > "$work/spki.conf"
  openssl asn1parse -genconf "$work/spki.conf" -noout -out "$work/spki.der"
  {
    printf '%s\n' '-----BEGIN PUBLIC KEY-----'
    openssl base64 -in "$work/spki.der"
    printf '%s\n' '-----END PUBLIC KEY-----'
  } > "$(public_of "$1")"
}

make_key primary -algorithm RSA -pkeyopt rsa_keygen_bits:2048
make_key rotated -algorithm RSA -pkeyopt rsa_keygen_bits:2048
make_key rsa4096 -algorithm RSA -pkeyopt rsa_keygen_bits:4096
make_key rsa1024 -algorithm RSA -pkeyopt rsa_keygen_bits:1024
make_key rsa2047 -algorithm RSA -pkeyopt rsa_keygen_bits:2047
make_key rsa2048-e3 -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -pkeyopt rsa_keygen_pubexp:3
make_key rsa-pss -algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048
make_key ec-p256 -algorithm EC -pkeyopt ec_paramgen_curve:P-256
make_public_with_exponent rsa2048-e1 1
make_public_with_exponent rsa2048-e65536 65536
# Other spellings of the primary key: an older PEM form, which is as good, and a private key, which is not.
[ -s "$keys/primary.public-pkcs1.pem" ] ||
  openssl rsa -pubin -in "$(public_of primary)" -RSAPublicKey_out -out "$keys/primary.public-pkcs1.pem" 2> /dev/null
[ -s "$keys/primary.test-private-pkcs1.pem" ] ||
  openssl rsa -in "$(private_of primary)" -traditional -out "$keys/primary.test-private-pkcs1.pem" 2> /dev/null

# ------------------------------------------------------------------------------------------ payment vectors

payments=$out/payments.json
: > "$work/payments"
mkdir -p "$work/signatures"

# payment NAME EXPECTATION NOTE, then assignments, then `write`.
#   runs        valid, and a receiver runs it
#   never-run   the bare signature check says valid, and yet it must never be run
#   unreadable  as never-run, and no canonical string is prescribed for the body; the one given is what a naive
#               receiver makes of it
#   refused     not valid
payment() {
  name=$1 expectation=$2 note=$3
  signer=primary verifier=primary digest=sha256
  canonical='' # what the specification makes of the body
  signed=''    # what was signed, where that is another text
  signature='' # the text of the signature, where it is not the ordinary one
  body=''      # @SIGNATURE@ stands for the signature
  left_out=''  # optional fields on which the readings do not agree, and so not handed on: "userId", "message" …
  spells=''    # the vector whose signed string this body spells in an odd way: the same event
}

sign() { # file, key, digest, further arguments -> base64
  local file=$1 key=$2 hash=$3
  shift 3
  openssl dgst "-$hash" -sign "$(private_of "$key")" "$@" "$file" | base64_of
}
signature_of() { cat "$work/signatures/$1"; } # of an earlier vector

write() {
  local valid=true run=true prefix suffix
  case $expectation in
    runs) ;;
    never-run | unreadable) run=false ;;
    refused) valid=false run=false ;;
    *) fail "$name: unknown expectation $expectation" ;;
  esac
  # printf %b only where a canonical string asks for it: \0000 is the one byte that bash cannot hold.
  case $canonical in
    %b*) printf '%b' "${canonical#%b}" > "$work/canonical" ;;
    *) printf '%s' "$canonical" > "$work/canonical" ;;
  esac
  if [ -z "$signature" ]; then
    if [ -n "$signed" ]; then printf '%s' "$signed" > "$work/signed"; else cp "$work/canonical" "$work/signed"; fi
    signature=$(sign "$work/signed" "$signer" "$digest")
  fi
  [ ! -e "$work/signatures/$name" ] || fail "$name is there twice"
  printf '%s' "$signature" > "$work/signatures/$name"
  case $body in
    *@SIGNATURE@*)
      prefix=${body%%@SIGNATURE@*} suffix=${body#*@SIGNATURE@}
      body=$prefix$signature$suffix
      ;;
  esac
  printf '%s' "$body" > "$work/body"
  {
    printf '  {\n    "name": %s,\n' "$(json_text "$name")"
    printf '    "body": %s,\n' "$(json_of "$work/body")"
    printf '    "canonical": %s,\n' "$(json_of "$work/canonical")"
    printf '    "publicKey": "%s",\n    "valid": %s,\n    "run": %s,\n' "$verifier" "$valid" "$run"
    [ "$expectation" != unreadable ] || printf '    "readable": false,\n'
    [ -z "$spells" ] || printf '    "spells": "%s",\n' "$spells"
    [ -z "$left_out" ] || printf '    "leftOut": [%s],\n' "$left_out"
    printf '    "note": %s\n  },\n' "$(json_text "$note")"
  } >> "$work/payments"
}

# --- every event with every status, every documented field

payment deposit-success runs 'DEPOSIT with SUCCESS, every documented field.'
canonical='amount=1250.500000&callbackUrl=https://shop.example/callbacks/pay&event=DEPOSIT&merchantId=7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15&message=Payment completed successfully&payTxnId=3b9e6c42-0a7f-4d58-8c1e-f5a2d9047b63&providerTxId=CFG7K2P9QX&referenceId=order-1001&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264'
body='{"event":"DEPOSIT","referenceId":"order-1001","payTxnId":"3b9e6c42-0a7f-4d58-8c1e-f5a2d9047b63","status":"SUCCESS","amount":"1250.500000","callbackUrl":"https://shop.example/callbacks/pay","message":"Payment completed successfully","providerTxId":"CFG7K2P9QX","timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":"7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15","userId":"c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264","signature":"@SIGNATURE@"}'
write

payment deposit-failed runs 'DEPOSIT with FAILED, every documented field.'
canonical='amount=1250.500000&callbackUrl=https://shop.example/callbacks/pay&event=DEPOSIT&merchantId=7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15&message=Insufficient balance&payTxnId=90c5d3f1-7b2a-4e46-a8d9-1f6b0e4c7352&providerTxId=CFG7K2P9QY&referenceId=order-1002&status=FAILED&timestamp=2025-11-21T09:16:01.000000001Z&userId=c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264'
body='{"event":"DEPOSIT","referenceId":"order-1002","payTxnId":"90c5d3f1-7b2a-4e46-a8d9-1f6b0e4c7352","status":"FAILED","amount":"1250.500000","callbackUrl":"https://shop.example/callbacks/pay","message":"Insufficient balance","providerTxId":"CFG7K2P9QY","timestamp":"2025-11-21T09:16:01.000000001Z","merchantId":"7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15","userId":"c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264","signature":"@SIGNATURE@"}'
write

payment deposit-pending runs 'DEPOSIT with PENDING, every documented field.'
canonical='amount=0.000001&callbackUrl=https://shop.example/callbacks/pay&event=DEPOSIT&merchantId=7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15&message=Waiting for the customer&payTxnId=5f8d2a60-c3e4-4b17-9d0a-7e6c1b8f2439&providerTxId=CFG7K2P9QZ&referenceId=order-1003&status=PENDING&timestamp=2025-11-21T09:16:59.999999999Z&userId=c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264'
body='{"event":"DEPOSIT","referenceId":"order-1003","payTxnId":"5f8d2a60-c3e4-4b17-9d0a-7e6c1b8f2439","status":"PENDING","amount":"0.000001","callbackUrl":"https://shop.example/callbacks/pay","message":"Waiting for the customer","providerTxId":"CFG7K2P9QZ","timestamp":"2025-11-21T09:16:59.999999999Z","merchantId":"7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15","userId":"c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264","signature":"@SIGNATURE@"}'
write

payment withdrawal-success runs 'WITHDRAWAL with SUCCESS, every documented field.'
canonical='amount=99999999999.999999&callbackUrl=https://shop.example/callbacks/pay&event=WITHDRAWAL&merchantId=7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15&message=Withdrawal completed&payTxnId=e2704b9c-1d6f-4a83-b5c0-9a3e8d7f6012&providerTxId=WD-55120&referenceId=payout-77&status=SUCCESS&timestamp=2025-11-21T10:00:00.500000000Z&userId=c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264'
body='{"event":"WITHDRAWAL","referenceId":"payout-77","payTxnId":"e2704b9c-1d6f-4a83-b5c0-9a3e8d7f6012","status":"SUCCESS","amount":"99999999999.999999","callbackUrl":"https://shop.example/callbacks/pay","message":"Withdrawal completed","providerTxId":"WD-55120","timestamp":"2025-11-21T10:00:00.500000000Z","merchantId":"7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15","userId":"c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264","signature":"@SIGNATURE@"}'
write

payment withdrawal-failed runs 'WITHDRAWAL with FAILED, every documented field.'
canonical='amount=500.000000&callbackUrl=https://shop.example/callbacks/pay&event=WITHDRAWAL&merchantId=7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15&message=Account not found&payTxnId=47a1c8e5-93d0-4f2b-8e6a-0b5d7c9f1e38&providerTxId=WD-55121&referenceId=payout-78&status=FAILED&timestamp=2025-11-21T10:00:01.000000000Z&userId=c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264'
body='{"event":"WITHDRAWAL","referenceId":"payout-78","payTxnId":"47a1c8e5-93d0-4f2b-8e6a-0b5d7c9f1e38","status":"FAILED","amount":"500.000000","callbackUrl":"https://shop.example/callbacks/pay","message":"Account not found","providerTxId":"WD-55121","timestamp":"2025-11-21T10:00:01.000000000Z","merchantId":"7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15","userId":"c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264","signature":"@SIGNATURE@"}'
write

payment withdrawal-pending runs 'WITHDRAWAL with PENDING, every documented field.'
canonical='amount=500.000000&callbackUrl=https://shop.example/callbacks/pay&event=WITHDRAWAL&merchantId=7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15&message=Queued at the bank&payTxnId=b86f0d92-4c7e-41a5-93b8-d2e5f1a07c64&providerTxId=WD-55122&referenceId=payout-79&status=PENDING&timestamp=2025-11-21T10:00:02.000000000Z&userId=c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264'
body='{"event":"WITHDRAWAL","referenceId":"payout-79","payTxnId":"b86f0d92-4c7e-41a5-93b8-d2e5f1a07c64","status":"PENDING","amount":"500.000000","callbackUrl":"https://shop.example/callbacks/pay","message":"Queued at the bank","providerTxId":"WD-55122","timestamp":"2025-11-21T10:00:02.000000000Z","merchantId":"7d1f0c3a-52b8-4e6d-9a41-2c8f6e0b9d15","userId":"c04a8b1d-6f2e-4973-b5d0-8e1c7a3f9264","signature":"@SIGNATURE@"}'
write

# The same callback again and again below: short, with the fields that no callback can do without, and a userId.
short_canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
short_body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'

payment short runs 'The callback that most vectors below are variations of.'
canonical=$short_canonical
body=$short_body
write

payment without-optional-fields runs 'merchantId, message, providerTxId and userId are absent.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27Z'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27Z","signature":"@SIGNATURE@"}'
write

payment unlisted-status never-run 'A status that payment callbacks do not list.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=CANCELLED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"CANCELLED","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment unlisted-event never-run 'An event that the specification does not list.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=REVERSAL&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"REVERSAL","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

# --- nulls and empty values

payment nulls-omitted runs 'Four fields are null: none of them is in the canonical string.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=PENDING&timestamp=2025-11-21T09:15:27.123456789Z'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"PENDING","amount":"10.000000","callbackUrl":"https://shop.example/cb","message":null,"providerTxId":null,"timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":null,"userId":null,"signature":"@SIGNATURE@"}'
write

payment undocumented-null-omitted runs 'An undocumented field that is null is omitted like any other.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","discount":null,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment nulls-added-after-signing runs 'The body of "short" to which someone added nulls: the signature still holds, so raw bodies must not be compared.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"event":"DEPOSIT","message":null,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","merchantId":null,"callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@","providerTxId":null,"attempt":null}'
write

payment null-signed-as-text refused 'The sender wrote message=null where it had to omit the field.'
canonical=$short_canonical
signed='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=null&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":null,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment null-signed-as-empty refused 'The sender wrote message= where it had to omit the field.'
canonical=$short_canonical
signed='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":null,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment text-null-is-not-null runs 'The text "null" is a value and stays.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=null&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"null","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment text-null-replaced-by-null refused 'The same body with the text "null" replaced by null: the signature no longer holds.'
canonical=$short_canonical
signature=$(signature_of text-null-is-not-null)
body='{"event":"DEPOSIT","message":null,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment empty-text-stays runs 'An empty text is not null: message= stays.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment null-amount never-run 'amount is null and so not covered by the signature.'
canonical='callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":null,"callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment only-a-signature never-run 'A body of nothing but a signature over the empty canonical string.'
canonical=''
body='{"signature":"@SIGNATURE@"}'
write

# --- undocumented fields: raw JSON text

payment extra-strings runs 'Undocumented texts, each at its place in the order.'
canonical='amount=10.000000&amountCurrency=ETB&callbackUrl=https://shop.example/cb&event=DEPOSIT&fee=0.250000&merchantId=m-1&merchantName=Abebe Coffee&message=ok&payTxnId=tx-1&prefix=P 9&providerTxId=p-1&referenceId=order-1&status=SUCCESS&statusCode=00&timestamp=2025-11-21T09:15:27.123456789Z&tz=Africa/Addis_Ababa&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","message":"ok","providerTxId":"p-1","timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":"m-1","userId":"u-1","tz":"Africa/Addis_Ababa","statusCode":"00","prefix":"P 9","merchantName":"Abebe Coffee","fee":"0.250000","amountCurrency":"ETB","signature":"@SIGNATURE@"}'
left_out='"merchantId", "message", "providerTxId", "userId"'
write

payment extra-booleans runs 'true and false as JSON writes them.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&final=true&partial=false&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","final":true,"partial":false,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

number() { # name, the number as the body writes it, note
  payment "$1" runs "$3"
  canonical="amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&fee=$2&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1"
  body='{"event":"DEPOSIT","fee":'$2',"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
  write
}
number number-trailing-zero 10.0 'The number keeps its raw text: 10.0, not 10.'
number number-exponent 1e2 'The number keeps its raw text: 1e2, not 100.'
number number-exponent-upper-case 1E+2 'The number keeps its raw text: 1E+2.'
number number-beyond-double 12345678901234567890 'The number keeps all its digits, which a double cannot hold.'
number number-long-fraction 0.1000000000000000055511151231257827 'The number keeps all its decimals.'
number number-minus-zero -0 'The number keeps its sign: -0, not 0.'
number number-small 0.000000250 'The number keeps its raw text, not 2.5e-7.'
number number-overflow 1e999 'The number keeps its raw text; a double would be infinite.'
number number-zero 0 'Zero is not null and stays.'

payment number-with-white-space-around runs 'White space around a number is not part of it.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&fee=2.50&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body=$'{"event":"DEPOSIT","fee" : \t\r\n 2.50 \r\n\t ,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment number-last-member runs 'A number right before the closing brace.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&fee=2.50&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@","fee":2.50}'
write

payment number-signed-normalised refused 'The body says 10.0, but 10 was signed.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&fee=10.0&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signed='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&fee=10&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","fee":10.0,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment number-changed refused 'The body of "number-trailing-zero" with 10.0 changed to 10.00.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&fee=10.00&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of number-trailing-zero)
body='{"event":"DEPOSIT","fee":10.00,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment amount-as-number runs 'amount without quotes has the same canonical string as "short", and so is the same event.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":10.000000,"callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
spells=short
write

payment amount-malformed never-run 'A signed amount that is no decimal number.'
canonical='amount=1,250.50&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"1,250.50","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment timestamp-with-offset runs 'A signed timestamp with an offset is an instant.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T12:15:27.123456789+03:00&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T12:15:27.123456789+03:00","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment timestamp-malformed never-run 'A signed timestamp that does not say of which zone it is.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T12:15:27.123456789&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T12:15:27.123456789","userId":"u-1","signature":"@SIGNATURE@"}'
write

# --- sort order

payment upper-case-sorts-first runs 'By code unit Zeta sorts before amount; a locale would put it last.'
canonical='Alpha=1&Zeta=2&amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","Zeta":"2","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","Alpha":"1","signature":"@SIGNATURE@"}'
write

payment signed-in-locale-order refused 'The sender sorted without regard to case.'
canonical='Alpha=1&Zeta=2&amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signed='Alpha=1&amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1&Zeta=2'
body='{"event":"DEPOSIT","Zeta":"2","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","Alpha":"1","signature":"@SIGNATURE@"}'
write

payment digit-underscore-and-case runs 'Digits sort before capitals, capitals before the underscore, the underscore before small letters.'
canonical='amount=10.000000&amount1=a&amountX=b&amount_x=c&amountx=d&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"amountx":"d","amount_x":"c","amountX":"b","amount1":"a","event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment names-sorted-not-pairs refused 'The sender sorted the finished pairs, so that "amount1=" came before "amount=".'
canonical='amount=10.000000&amount1=a&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signed='amount1=a&amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"amount1":"a","event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment signed-in-body-order refused 'The sender did not sort at all.'
canonical=$short_canonical
signed='event=DEPOSIT&referenceId=order-1&payTxnId=tx-1&status=SUCCESS&amount=10.000000&callbackUrl=https://shop.example/cb&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body=$short_body
write

payment names-like-numbers runs 'Names of digits sort as text ("10" before "9"), whatever order an object keeps them in.'
canonical='10=a&9=b&amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"9":"b","10":"a","event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment names-beyond-ascii runs 'By code unit U+1D49C (surrogates D835 DC9C) sorts before U+FF41; by code point or by UTF-8 bytes it is the other way round. They may all be the end of the userId.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1&é=3&𝒜=1&ａ=2'
body='{"ａ":"2","𝒜":"1","é":"3","event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
left_out='"userId"'
write

payment name-proto runs 'A field named __proto__ is a field like any other.'
canonical='__proto__=x&amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"__proto__":"x","event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment name-constructor runs 'A field named constructor is a field like any other.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&constructor=x&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"constructor":"x","event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment name-like-signature runs 'Only the field named exactly "signature" is left out: Signature and statusSignature are signed.'
canonical='Signature=A&amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&statusSignature=B&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"Signature":"A","statusSignature":"B","event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

# --- characters

payment non-ascii-raw runs 'Amharic as raw UTF-8 in the body.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=ክፍያው ተሳክቷል – señor&payTxnId=tx-1&referenceId=ትዕዛዝ-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"ክፍያው ተሳክቷል – señor","referenceId":"ትዕዛዝ-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment non-ascii-escaped runs 'The same characters as \u escapes: the same canonical string in UTF-8, and so the same signature.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=ክፍያው ተሳክቷል – señor&payTxnId=tx-1&referenceId=ትዕዛዝ-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of non-ascii-raw)
body='{"event":"DEPOSIT","message":"\u12ad\u134d\u12eb\u12cd \u1270\u1233\u12ad\u1277\u120d \u2013 se\u00F1or","referenceId":"\u1275\u12d5\u12db\u12DD-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment non-ascii-signed-as-latin-1 refused 'The sender signed the message in ISO 8859-1.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=señor&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signed=$'amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=se\xf1or&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"señor","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment composed-and-decomposed refused 'An e with a combining accent (U+0065 U+0301) in the body, the composed letter (U+00E9) signed: nothing is normalised.'
canonical=$'amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=cafe\xcc\x81&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signed=$'amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=caf\xc3\xa9&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"cafe\u0301","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment astral-raw runs 'Emoji and other characters beyond the basic plane, as raw UTF-8 (four bytes each, not two surrogates of three).'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=Done 🎉👩🏽‍🌾 𝒜𐀀&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"Done 🎉👩🏽‍🌾 𝒜𐀀","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment astral-escaped runs 'The same characters as pairs of \u escapes: the same signature.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=Done 🎉👩🏽‍🌾 𝒜𐀀&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of astral-raw)
body='{"event":"DEPOSIT","message":"Done \ud83c\udf89\uD83D\uDC69\ud83c\udffd\u200d\ud83c\udf3e \ud835\udc9c\ud800\udc00","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment astral-signed-as-cesu-8 refused 'The sender encoded the two surrogates of U+1F389 one by one (CESU-8).'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=🎉&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signed=$'amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=\xed\xa0\xbc\xed\xbe\x89&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"🎉","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment replacement-character runs 'A genuine U+FFFD in a text.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=a�b&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"a\ufffdb","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment lone-surrogate runs 'The body of "replacement-character" with a lone surrogate, which has no UTF-8 form and is signed as U+FFFD: the event has what was signed.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=a�b&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of replacement-character)
body='{"event":"DEPOSIT","message":"a\ud800b","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
spells=replacement-character
write

payment control-characters runs 'Line ends, tabs, quotes, backslashes and U+2028 in a text are signed as the characters that the escapes stand for.'
canonical=$'amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=a\r\nb\tc"d\\e/f\bg\fh\x7f\xe2\x80\xa8&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body=$'{"event":"DEPOSIT","message":"a\\r\\nb\\tc\\"d\\\\e\\/f\\bg\\fh\x7f\xe2\x80\xa8","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment zero-character runs 'U+0000 in a text does not end the canonical string.'
canonical='%bamount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=a\0000b&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"a\u0000b","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment changed-after-zero-character refused 'The body of "zero-character" with its status changed behind the U+0000.'
canonical='%bamount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=a\0000b&payTxnId=tx-1&referenceId=order-1&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of zero-character)
body='{"event":"DEPOSIT","message":"a\u0000b","referenceId":"order-1","payTxnId":"tx-1","status":"FAILED","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment equals-spaces-and-percent runs 'Nothing is escaped: = and spaces and % and + and # stay as they are.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message= 100% of a=b + c #1 %26 = &payTxnId=tx-1&referenceId=a=b==&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=100%25 u=1'
body='{"event":"DEPOSIT","message":" 100% of a=b + c #1 %26 = ","referenceId":"a=b==","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"100%25 u=1","signature":"@SIGNATURE@"}'
write

payment signed-percent-encoded refused 'The sender percent-encoded the values.'
canonical=$short_canonical
signed='amount=10.000000&callbackUrl=https%3A%2F%2Fshop.example%2Fcb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09%3A15%3A27.123456789Z&userId=u-1'
body=$short_body
write

payment escapes-of-ascii runs 'Escapes of ordinary characters, in names too, and \/ and \u0026: the names and values are what they stand for.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?a=1&b=2&event=DEPOSIT&message=<b>R&D</b>&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"\u0065vent":"DEPOSIT","message":"\u003cb\u003eR\u0026D\u003c\/b\u003e","referenceId":"order\u002d1","payTxnId":"tx-1","status":"SUCCESS","\u0061mount":"10\u002e000000","callbackUrl":"https:\/\/shop.example\/cb?a=1\u0026b=2","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","s\u0069gnature":"@SIGNATURE@"}'
write

# --- the JSON around the fields does not matter

payment white-space-and-order runs 'The body of "short" with other white space and order of members: the same signature.'
canonical=$short_canonical
signature=$(signature_of short)
body=$' \t\n{\n  "userId" : "u-1",\n  "signature" : "@SIGNATURE@",\n\t"timestamp" : "2025-11-21T09:15:27.123456789Z",\n  "status" : "SUCCESS",\n  "referenceId" : "order-1",\n  "payTxnId" : "tx-1",\n  "event" : "DEPOSIT",\n  "callbackUrl" : "https://shop.example/cb",\n  "amount" : "10.000000"\n}\n'
write

payment crlf-white-space runs 'The body of "short" with CRLF line ends: the same signature.'
canonical=$short_canonical
signature=$(signature_of short)
body=$'{\r\n  "event": "DEPOSIT",\r\n  "referenceId": "order-1",\r\n  "payTxnId": "tx-1",\r\n  "status": "SUCCESS",\r\n  "amount": "10.000000",\r\n  "callbackUrl": "https://shop.example/cb",\r\n  "timestamp": "2025-11-21T09:15:27.123456789Z",\r\n  "userId": "u-1",\r\n  "signature": "@SIGNATURE@"\r\n}\r\n'
write

payment byte-order-mark unreadable 'The body of "short" after a byte order mark: not JSON.'
canonical=$short_canonical
signature=$(signature_of short)
body=$'\xef\xbb\xbf'$short_body
write

payment duplicate-name-last-wins runs 'status twice: the last one is what was signed, and a reader that keeps the first sees another.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"FAILED","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
spells=short
write

payment duplicate-name-escaped runs 'amount twice, once with an escape in its name: the last one is what was signed.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","\u0061mount":"99999.000000","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
spells=short
write

payment duplicate-name-same-value runs 'A name twice with the same value.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
spells=short
write

payment duplicate-name-null runs 'A name twice, once with null.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"event":"DEPOSIT","payTxnId":null,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
spells=short
write

payment duplicate-name-first-wins refused 'status twice: the first one is what was signed, and the last one is what counts.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of short)
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","status":"FAILED","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment array-of-one-text unreadable 'payTxnId in an array: turned into text carelessly it gives the same canonical string, and slips past a deduplication by identity.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":["tx-1"],"status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment object-value unreadable 'An object as value: the specification gives it no canonical form.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&details=[object Object]&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","details":{"fee":"1"},"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

# --- changed after signing

tampered() { # name, note; canonical and body as sent, under the signature of "short"
  payment "$1" refused "$2"
  signature=$(signature_of short)
}

tampered amount-changed 'The body of "short" with another amount.'
canonical='amount=10000.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10000.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

tampered amount-respelled 'The body of "short" with the same amount in another spelling.'
canonical='amount=10.00&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.00","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

tampered event-changed 'The body of "short" with another event.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=WITHDRAWAL&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"WITHDRAWAL","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

tampered payTxnId-changed 'The body of "short" with another payTxnId.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-2&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-2","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

tampered timestamp-changed 'The body of "short" with one nanosecond more.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456790Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456790Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

tampered field-removed 'The body of "short" without its userId.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","signature":"@SIGNATURE@"}'
write

tampered field-made-null 'The body of "short" with its userId made null.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":null,"signature":"@SIGNATURE@"}'
write

tampered field-added 'The body of "short" with a message added.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=hello&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"hello","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

tampered empty-field-added 'The body of "short" with an empty message added: empty is not null.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

tampered white-space-in-value 'The body of "short" with a space behind the referenceId: values are not trimmed.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1 &status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1 ","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

tampered name-in-other-case 'The body of "short" with the name userID.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userID=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userID":"u-1","signature":"@SIGNATURE@"}'
write

# --- something else was signed

wrong() { # name, note; the body of "short" under a signature over something else
  payment "$1" refused "$2"
  canonical=$short_canonical
  body=$short_body
}

wrong signed-with-trailing-line-end 'A line end behind the canonical string was signed too.'
signed=$short_canonical$'\n'
write

wrong signed-with-trailing-ampersand 'An & behind the canonical string was signed too.'
signed=$short_canonical'&'
write

wrong signed-with-signature-field 'The field signature was signed too, as an empty text.'
signed='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&signature=&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
write

wrong signed-raw-json 'The JSON text was signed instead of the canonical string.'
signed='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1"}'
write

wrong signed-hash-as-hex 'The hexadecimal SHA-256 of the canonical string was signed (hashed twice).'
printf '%s' "$short_canonical" > "$work/input"
signed=$(openssl dgst -sha256 -binary "$work/input" > "$work/hash" && hex_of "$work/hash")
write

wrong signed-nothing 'The empty text was signed.'
: > "$work/empty"
signature=$(sign "$work/empty" primary sha256)
write

wrong signature-of-another-callback 'The genuine signature of the callback "deposit-success".'
signature=$(signature_of deposit-success)
write

# --- other keys and algorithms

wrong signed-with-rotated-key 'Signed by the rotated key, checked with the primary one.'
signer=rotated
write

payment rotated-key runs 'Signed by the rotated key and checked with it.'
signer=rotated verifier=rotated
canonical=$short_canonical
body=$short_body
write

payment rsa-4096 runs 'Signed and checked with a longer key: the signature has 512 bytes.'
signer=rsa4096 verifier=rsa4096
canonical=$short_canonical
body=$short_body
write

wrong longer-signature-than-the-key 'Signed with a key of 4096 bits, checked with the primary one of 2048.'
signer=rsa4096
write

wrong shorter-signature-than-the-key 'Signed with the primary key of 2048 bits, checked with one of 4096.'
verifier=rsa4096
write

wrong sha-1 'Signed with SHA-1.'
digest=sha1
write

wrong sha-384 'Signed with SHA-384.'
digest=sha384
write

wrong sha-512 'Signed with SHA-512.'
digest=sha512
write

printf '%s' "$short_canonical" > "$work/input"
wrong pss-padding 'Signed with PSS padding (of salt length 0, so that it is the same each time).'
signature=$(sign "$work/input" primary sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:0)
write

wrong hmac-with-the-public-key 'An HMAC keyed with the public key, which everyone knows.'
openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(hex_of "$(public_of primary)")" -binary "$work/input" > "$work/mac"
signature=$(base64_of < "$work/mac")
write

# --- PKCS#1 v1.5 blocks that are almost right, signed by the primary key's holder

openssl dgst -sha256 -binary "$work/input" > "$work/hash"
hash=$(hex_of "$work/hash")
digest_info=3031300d060960864801650304020105000420 # SHA-256 (RFC 8017, 9.2, note 1)
# The private-key operation on a block of 256 bytes with no padding of openssl's own (which it calls decrypt).
block() {
  [ "${#1}" -eq 512 ] || fail "$name: a block of ${#1} digits"
  bytes_of "$1" > "$work/block"
  signature=$(openssl pkeyutl -decrypt -inkey "$(private_of primary)" -pkeyopt rsa_padding_mode:none -in "$work/block" | base64_of)
}

payment block-right runs 'The right block, built by hand: proves that the blocks below are built well. The same signature as "short".'
canonical=$short_canonical
body=$short_body
block "0001$(repeat ff 202)00$digest_info$hash"
[ "$signature" = "$(signature_of short)" ] || fail 'the block built by hand has another signature'
write

wrong block-without-digest-info 'The bare hash is in the block, without the name of the algorithm.'
block "0001$(repeat ff 221)00$hash"
write

wrong block-without-parameters 'The algorithm is named without its NULL parameters.'
block "0001$(repeat ff 204)00302f300b06096086480165030402010420$hash"
write

wrong block-long-form-length 'A length in the block is written in BER with one byte more than DER allows.'
block "0001$(repeat ff 201)00308131${digest_info#3031}$hash"
write

wrong block-short-padding 'Eight bytes of padding, and the rest behind the hash (the forgery against lenient checks with e = 3).'
block "0001$(repeat ff 8)00$digest_info$hash$(repeat 00 194)"
write

wrong block-garbage-in-padding 'One byte of the padding is not ff.'
block "0001$(repeat ff 100)fe$(repeat ff 101)00$digest_info$hash"
write

wrong block-type-0 'A block of type 0: padded with zeros.'
block "0000$(repeat 00 202)00$digest_info$hash"
write

wrong block-type-2 'A block of type 2: for encryption.'
block "0002$(repeat a5 202)00$digest_info$hash"
write

wrong block-other-algorithm 'The block names SHA-512/256 and holds the SHA-256 hash.'
block "0001$(repeat ff 202)003031300d060960864801650304020605000420$hash"
write

# --- the signature's bytes

genuine=$(signature_of short)
printf '%s' "$genuine" | openssl base64 -d -A > "$work/genuine"
genuine_hex=$(hex_of "$work/genuine")
from_hex() { bytes_of "$1" > "$work/bytes" && base64_of < "$work/bytes"; }
flip() { printf '%02x' $((0x$1 ^ $2)); }

wrong first-bit-flipped 'The first bit of the signature is flipped.'
signature=$(from_hex "$(flip "${genuine_hex:0:2}" 128)${genuine_hex:2}")
write

wrong middle-bit-flipped 'One bit in the middle of the signature is flipped.'
signature=$(from_hex "${genuine_hex:0:256}$(flip "${genuine_hex:256:2}" 16)${genuine_hex:258}")
write

wrong last-bit-flipped 'The last bit of the signature is flipped.'
signature=$(from_hex "${genuine_hex:0:510}$(flip "${genuine_hex:510:2}" 1)")
write

wrong last-byte-cut 'The last byte of the signature is missing.'
signature=$(from_hex "${genuine_hex:0:510}")
write

wrong zero-byte-in-front 'A zero byte in front: the same number, in 257 bytes.'
signature=$(from_hex "00$genuine_hex")
write

wrong zero-byte-behind 'A zero byte behind.'
signature=$(from_hex "${genuine_hex}00")
write

wrong bytes-reversed 'The bytes in reverse (little-endian).'
signature=$(from_hex "$(printf '%s' "$genuine_hex" | sed 's/../&\n/g' | awk 'NF { all = $0 all } END { print all }')")
write

wrong all-zero '256 zero bytes.'
signature=$(from_hex "$(repeat 00 256)")
write

wrong one 'The number one.'
signature=$(from_hex "$(repeat 00 255)01")
write

wrong the-modulus 'The modulus itself: zero, in another spelling.'
signature=$(from_hex "$(openssl rsa -pubin -in "$(public_of primary)" -modulus -noout | sed 's/^Modulus=//' | tr A-F a-f)")
write

# One signature in 256 begins with a zero byte. The search starts where it ends with the committed keys.
for ((n = 132; ; n++)); do
  leading_canonical="amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-$n&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1"
  printf '%s' "$leading_canonical" > "$work/leading"
  leading_signature=$(sign "$work/leading" primary sha256)
  case $leading_signature in A[A-P]*) break ;; esac
done
leading_body='{"event":"DEPOSIT","referenceId":"order-'$n'","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'

payment leading-zero-byte runs 'A signature that happens to begin with a zero byte, in full length.'
canonical=$leading_canonical
body=$leading_body
write

payment leading-zero-byte-cut refused 'The same signature without its zero byte: the same number, in 255 bytes.'
canonical=$leading_canonical
body=$leading_body
printf '%s' "$leading_signature" | openssl base64 -d -A > "$work/leading"
leading_hex=$(hex_of "$work/leading")
signature=$(from_hex "${leading_hex:2}")
write

# --- the signature's text: the bytes behind it are genuine, the spelling is not

stem=${genuine%==}
alphabet=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/
case $genuine in *[+/]*) ;; *) fail 'the signature of "short" has no + or /: make another primary key' ;; esac

wrong base64url 'In the URL-safe alphabet.'
signature=$(printf '%s' "$genuine" | tr '+/' '-_')
write

wrong base64url-without-padding 'In the URL-safe alphabet, without padding.'
signature=$(printf '%s' "$stem" | tr '+/' '-_')
write

wrong padding-missing 'Without padding.'
signature=$stem
write

wrong padding-halved 'With one = of two.'
signature=$stem=
write

wrong padding-too-long 'With three = instead of two.'
signature=$genuine=
write

wrong trailing-space 'With a space behind.'
signature="$genuine "
write

wrong trailing-line-end 'With a line end behind.'
signature=$genuine'\n'
write

wrong trailing-zero-character 'With U+0000 behind.'
signature=$genuine'\u0000'
write

wrong leading-space 'With a space in front.'
signature=" $genuine"
write

wrong wrapped-lines 'Wrapped after 64 characters, as openssl does by itself.'
signature=$(openssl base64 -in "$work/genuine" | awk '{ printf "%s\\n", $0 }')
write

wrong spare-bits-set 'The four spare bits of the last character are not zero: four bits that anyone can change.'
before=${stem%?} last=${stem#"${stem%?}"}
position=${alphabet%%"$last"*}
signature="$before${alphabet:$((${#position} + 1)):1}=="
write

wrong characters-behind-padding 'With four characters behind the padding.'
signature=${genuine}AAAA
write

wrong junk-characters 'With a character from outside the alphabet in the middle, which lenient decoders skip.'
signature=${genuine:0:100}'*'${genuine:100}
write

wrong plus-turned-into-space 'Every + became a space, as by form decoding.'
case $genuine in *+*) ;; *) fail 'the signature of "short" has no +: make another primary key' ;; esac
signature=$(printf '%s' "$genuine" | tr '+' ' ')
write

wrong percent-encoded 'Percent-encoded.'
signature=$(printf '%s' "$genuine" | sed 's/+/%2B/g; s,/,%2F,g; s/=/%3D/g')
write

wrong hexadecimal 'In hexadecimal.'
signature=$genuine_hex
write

wrong base64-twice 'Encoded twice.'
signature=$(printf '%s' "$genuine" | base64_of)
write

wrong lower-case 'All letters in lower case.'
signature=$(printf '%s' "$genuine" | tr 'A-Z' 'a-z')
write

wrong full-width-letter 'The first character replaced by its full-width form with the same last seven bits.'
signature='\uff'$(printf '%02x' $(($(printf '%d' "'${genuine:0:1}") - 0x20)))${genuine:1}
write

wrong signature-empty 'An empty signature.'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":""}'
write

wrong signature-missing 'No signature.'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1"}'
write

wrong signature-null 'The signature is null.'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":null}'
write

wrong signature-number 'The signature is a number.'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":0}'
write

wrong signature-true 'The signature is true.'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":true}'
write

wrong signature-in-array 'The genuine signature in an array.'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":["@SIGNATURE@"]}'
write

wrong signature-in-object 'The genuine signature in an object.'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":{"value":"@SIGNATURE@"}}'
write

# --- values with &: one canonical string, several readings

payment callback-url-with-query runs 'A query in the callbackUrl: no other reading is sorted.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?a=1&b=2&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?a=1&b=2","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment callback-url-with-field-name runs 'A query with the name of a documented field.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?x=1&userId=5&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?x=1&userId=5","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment callback-url-with-event-first runs 'A query that begins with event=: not &event=.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?event=5&y=1&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?event=5&y=1","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment callback-url-with-event-later never-run 'A query with &event=: held until the merchant pins the address.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?y=1&event=5&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?y=1&event=5","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment callback-url-tail runs 'A query whose tail sorts between callbackUrl and event.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?c=1&d=2&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?c=1&d=2","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment callback-url-tail-split-off runs 'The other reading of "callback-url-tail": the tail is a field d. Nothing documented differs but the tail; d must not be handed on.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?c=1&d=2&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of callback-url-tail)
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?c=1","d":"2","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment message-with-ampersand runs 'An & in the message, and one before a name that no field has.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=R&D & sons &n=1&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"R&D & sons &n=1","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment message-tail-split-off runs 'The other reading of "message-with-ampersand": the tail is a field n, which must not be handed on.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=R&D & sons &n=1&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of message-with-ampersand)
body='{"event":"DEPOSIT","message":"R&D & sons ","n":1,"referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment message-swallows-payTxnId never-run 'A message with & and the name of a documented field and =.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=paid&payTxnId=tx-9&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","message":"paid&payTxnId=tx-9","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment reference-with-ampersand runs 'An & in the referenceId that no name and = follow.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=A&B-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"A&B-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment reference-with-pair never-run 'An & in the referenceId with a name and = behind it.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=A&s=1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"A&s=1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment reference-with-pair-split-off never-run 'The other reading of "reference-with-pair": an undocumented field directly behind referenceId.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=A&s=1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of reference-with-pair)
body='{"event":"DEPOSIT","referenceId":"A","s":"1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment user-id-with-ampersand runs 'An & in the userId that no name and = follow.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u&1","signature":"@SIGNATURE@"}'
write

payment provider-id-with-ampersand runs 'An & in the providerTxId that no name and = follow.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&providerTxId=p&1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","providerTxId":"p&1","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment extra-behind-provider-id runs 'An undocumented field directly behind providerTxId, not declared by the merchant: it may be the end of it.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&providerTxId=p-1&rate=1.0&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","providerTxId":"p-1","rate":1.0,"timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
left_out='"providerTxId"'
write

payment extra-behind-user-id runs 'An undocumented field directly behind userId, not declared by the merchant: it may be the end of it.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1&version=2'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","version":2,"signature":"@SIGNATURE@"}'
left_out='"userId"'
write

payment user-id-with-pair runs 'An & in the userId with a name and = behind it: it may be a field of its own.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1&version=2'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1&version=2","signature":"@SIGNATURE@"}'
left_out='"userId"'
write

payment too-many-parts never-run 'A message with & more often than any string is read for.'
canonical="amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&message=a$(repeat '&a=1' 130)&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1"
body='{"event":"DEPOSIT","message":"a'$(repeat '&a=1' 130)'","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

# --- bodies that spell a signed string in another way: the same event

payment spelling-value-swallows-field runs 'The body of "short" with its status inside the referenceId: the service signed both.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"event":"DEPOSIT","referenceId":"order-1&status=SUCCESS","payTxnId":"tx-1","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
spells=short
write

payment spelling-name-swallows-field runs 'The body of "short" with event and payTxnId in one name.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"event=DEPOSIT&payTxnId":"tx-1","referenceId":"order-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
spells=short
write

payment spelling-all-in-one runs 'The body of "short" as a single field.'
canonical=$short_canonical
signature=$(signature_of short)
body='{"amount":"10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1","signature":"@SIGNATURE@"}'
spells=short
write

# --- forgeries by cutting a signed string in other places

payment resplit-reference-genuine never-run 'Genuine and FAILED: the merchant let a customer choose the referenceId, which carries a complete tail.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&merchantId=m-1&message=Declined&payTxnId=tx-1&providerTxId=p-1&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u","payTxnId":"tx-1","status":"FAILED","amount":"10.000000","callbackUrl":"https://shop.example/cb","message":"Declined","providerTxId":"p-1","timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":"m-1","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment resplit-reference-forged never-run 'The forgery out of "resplit-reference-genuine": SUCCESS for VICTIM-7; the userId swallows the true tail.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&merchantId=m-1&message=Declined&payTxnId=tx-1&providerTxId=p-1&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of resplit-reference-genuine)
body='{"event":"DEPOSIT","referenceId":"VICTIM-7","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","message":"Declined","providerTxId":"p-1","timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":"m-1","userId":"u&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1","signature":"@SIGNATURE@"}'
write

payment resplit-reference-extra-genuine never-run 'As "resplit-reference-genuine", without a userId of its own: the true tail is to go into an undocumented field.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&zzz=&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z'
body='{"event":"DEPOSIT","referenceId":"VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&zzz=","payTxnId":"tx-1","status":"FAILED","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","signature":"@SIGNATURE@"}'
write

payment resplit-reference-extra-forged never-run 'The forgery out of "resplit-reference-extra-genuine": an undocumented field swallows the true tail.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&zzz=&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z'
signature=$(signature_of resplit-reference-extra-genuine)
body='{"event":"DEPOSIT","referenceId":"VICTIM-7","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","zzz":"&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z","signature":"@SIGNATURE@"}'
write

payment resplit-optional-genuine runs 'Genuine, without a providerTxId: a customer has chosen the undocumented text in front of it.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&phone=251900000000&providerTxId=FORGED&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","phone":"251900000000&providerTxId=FORGED","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
left_out='"providerTxId"'
write

payment resplit-optional-forged runs 'The forgery out of "resplit-optional-genuine": what it forges is not handed on.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&phone=251900000000&providerTxId=FORGED&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of resplit-optional-genuine)
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","phone":"251900000000","providerTxId":"FORGED","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
left_out='"providerTxId"'
write

payment resplit-message-genuine never-run 'Genuine and FAILED: the message carries a complete tail.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&merchantId=m-1&message=ok&payTxnId=tx-9&providerTxId=p-9&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&payTxnId=tx-1&providerTxId=p-1&referenceId=order-1&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"FAILED","amount":"10.000000","callbackUrl":"https://shop.example/cb","message":"ok&payTxnId=tx-9&providerTxId=p-9&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u","providerTxId":"p-1","timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":"m-1","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment resplit-message-forged never-run 'The forgery out of "resplit-message-genuine".'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&merchantId=m-1&message=ok&payTxnId=tx-9&providerTxId=p-9&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&payTxnId=tx-1&providerTxId=p-1&referenceId=order-1&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of resplit-message-genuine)
body='{"event":"DEPOSIT","referenceId":"VICTIM-7","payTxnId":"tx-9","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","message":"ok","providerTxId":"p-9","timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":"m-1","userId":"u&payTxnId=tx-1&providerTxId=p-1&referenceId=order-1&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1","signature":"@SIGNATURE@"}'
write

payment resplit-callback-url-genuine never-run 'Genuine, of an unlisted event: its callbackUrl carries a complete sorted tail.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?x=1&event=DEPOSIT&merchantId=m-1&message=ok&payTxnId=tx-9&providerTxId=p-9&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&event=REVERSAL&merchantId=m-1&message=Reversed&payTxnId=tx-1&providerTxId=p-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"REVERSAL","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?x=1&event=DEPOSIT&merchantId=m-1&message=ok&payTxnId=tx-9&providerTxId=p-9&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u","message":"Reversed","providerTxId":"p-1","timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":"m-1","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment resplit-callback-url-forged never-run 'The forgery out of "resplit-callback-url-genuine": a DEPOSIT for VICTIM-7; the userId swallows the true tail.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?x=1&event=DEPOSIT&merchantId=m-1&message=ok&payTxnId=tx-9&providerTxId=p-9&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&event=REVERSAL&merchantId=m-1&message=Reversed&payTxnId=tx-1&providerTxId=p-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of resplit-callback-url-genuine)
body='{"event":"DEPOSIT","referenceId":"VICTIM-7","payTxnId":"tx-9","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?x=1","message":"ok","providerTxId":"p-9","timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":"m-1","userId":"u&event=REVERSAL&merchantId=m-1&message=Reversed&payTxnId=tx-1&providerTxId=p-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1","signature":"@SIGNATURE@"}'
write

payment resplit-callback-url-message-genuine never-run 'Genuine, of an unlisted event: its callbackUrl carries event and the beginning of a message, which is to swallow the true event.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?x=1&event=DEPOSIT&message=&event=REVERSAL&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"REVERSAL","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?x=1&event=DEPOSIT&message=","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment resplit-callback-url-message-forged never-run 'The forgery out of "resplit-callback-url-message-genuine": the reversal has become a deposit, and the message says &event=REVERSAL.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb?x=1&event=DEPOSIT&message=&event=REVERSAL&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of resplit-callback-url-message-genuine)
body='{"event":"DEPOSIT","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb?x=1","message":"&event=REVERSAL","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment resplit-reversal-reference-genuine never-run 'Genuine, of an unlisted event whose status and tail are swallowed: the referenceId carries a complete sorted tail.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=REVERSAL&payTxnId=tx-1&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"REVERSAL","referenceId":"VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u","payTxnId":"tx-1","status":"FAILED","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment resplit-reversal-reference-forged never-run 'The forgery out of "resplit-reversal-reference-genuine".'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=REVERSAL&payTxnId=tx-1&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of resplit-reversal-reference-genuine)
body='{"event":"REVERSAL","referenceId":"VICTIM-7","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1","signature":"@SIGNATURE@"}'
write

payment resplit-reference-name-forged never-run 'The forgery out of "resplit-reference-genuine" with the true tail in a field whose name has = and & in it.'
canonical='amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&merchantId=m-1&message=Declined&payTxnId=tx-1&providerTxId=p-1&referenceId=VICTIM-7&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u&status=FAILED&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of resplit-reference-genuine)
body='{"event":"DEPOSIT","referenceId":"VICTIM-7","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","message":"Declined","providerTxId":"p-1","timestamp":"2025-11-21T09:15:27.123456789Z","merchantId":"m-1","userId=u&status=FAILED&timestamp":"2025-11-21T09:15:27.123456789Z&userId=u-1","signature":"@SIGNATURE@"}'
write

payment resplit-undocumented-genuine never-run 'Genuine, for 10: an undocumented free text that sorts before amount carries another amount and the beginning of another callbackUrl.'
canonical='accountName=Abebe&amount=99999.000000&callbackUrl=https://shop.example/cb?x=&amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
body='{"event":"DEPOSIT","accountName":"Abebe&amount=99999.000000&callbackUrl=https://shop.example/cb?x=","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"10.000000","callbackUrl":"https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

payment resplit-undocumented-forged never-run 'The forgery out of "resplit-undocumented-genuine", for 99999: the callbackUrl swallows the true amount and the true callbackUrl.'
canonical='accountName=Abebe&amount=99999.000000&callbackUrl=https://shop.example/cb?x=&amount=10.000000&callbackUrl=https://shop.example/cb&event=DEPOSIT&payTxnId=tx-1&referenceId=order-1&status=SUCCESS&timestamp=2025-11-21T09:15:27.123456789Z&userId=u-1'
signature=$(signature_of resplit-undocumented-genuine)
body='{"event":"DEPOSIT","accountName":"Abebe","referenceId":"order-1","payTxnId":"tx-1","status":"SUCCESS","amount":"99999.000000","callbackUrl":"https://shop.example/cb?x=&amount=10.000000&callbackUrl=https://shop.example/cb","timestamp":"2025-11-21T09:15:27.123456789Z","userId":"u-1","signature":"@SIGNATURE@"}'
write

{ printf '[\n'; sed '$ s/,$//' "$work/payments"; printf ']\n'; } > "$payments"

# --------------------------------------------------------------------------------- keys that must be refused

refused=$out/refused-keys.json
: > "$work/refused"
refused_key() { # file in keys/, signature (a genuine one under that key, or empty), note
  local prefix=${short_body%%@SIGNATURE@*} suffix=${short_body#*@SIGNATURE@}
  {
    printf '  {\n    "key": %s,\n' "$(json_text "$1")"
    printf '    "body": %s,\n' "$(json_text "$prefix${2:-$genuine}$suffix")"
    printf '    "canonical": %s,\n' "$(json_text "$short_canonical")"
    if [ -n "$2" ]; then printf '    "opensslAccepts": true,\n'; else printf '    "opensslAccepts": false,\n'; fi
    printf '    "note": %s\n  },\n' "$(json_text "$3")"
  } >> "$work/refused"
}
printf '%s' "$short_canonical" > "$work/input"
refused_key rsa1024.public.pem "$(sign "$work/input" rsa1024 sha256)" '1024 bits, with a genuine signature.'
refused_key rsa2047.public.pem "$(sign "$work/input" rsa2047 sha256)" 'One bit too short; its signatures have 256 bytes like those of 2048 bits.'
refused_key rsa2048-e3.public.pem "$(sign "$work/input" rsa2048-e3 sha256)" 'Exponent 3, with a genuine signature.'
# With e = 1 the signature is the padded block itself: no private key is needed.
refused_key rsa2048-e1.public.pem "$(from_hex "0001$(repeat ff 202)00$digest_info$hash")" 'Exponent 1, with a signature that was forged without any private key.'
refused_key rsa2048-e65536.public.pem '' 'An even exponent.'
refused_key rsa-pss.public.pem '' 'An RSA key that is restricted to PSS.'
refused_key ec-p256.public.pem '' 'An elliptic-curve key.'
refused_key primary.test-private.pem '' 'A private key in the place of the public one.'
refused_key primary.test-private-pkcs1.pem '' 'A private key in the older form.'
{ printf '[\n'; sed '$ s/,$//' "$work/refused"; printf ']\n'; } > "$refused"

# ------------------------------------------------------------------------------------------ connect vectors

connect=$out/connect.json
: > "$work/connect"

hmac() { # file, secret, digest -> lower-case hex, by both of openssl's ways to give a key
  printf '%s' "$2" > "$work/secret"
  openssl dgst "-${3:-sha256}" -mac HMAC -macopt "hexkey:$(hex_of "$work/secret")" -binary "$1" > "$work/mac"
  openssl dgst "-${3:-sha256}" -hmac "$2" -binary "$1" > "$work/mac2"
  cmp -s "$work/mac" "$work/mac2" || fail "two HMACs differ: $2"
  hex_of "$work/mac"
}

# connect NAME EXPECTATION NOTE, then assignments, then `deliver`. Expectations as for payments.
connect() {
  name=$1 expectation=$2 note=$3
  secret=$usual_secret
  raw=$usual_raw    # the body as a format of printf %b
  header='@USUAL@'  # @USUAL@ stands for sha256= and the right digest, @NONE@ for no header at all
}

usual_secret='whsec_test_4fT9wLzQ2mXc7RbK'
usual_raw='{"event":"connected_account.approved","idempotency_key":"evt_6d0b2f7a91c84e35","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_3f8a1c52-7e90-4b6d-8a2f-d5c4e1b09a73","master_merchant_id":"mm_91d7e4b0-2c5f-4a38-b6e1-0f7a8c3d5e29","kyc_status":"approved"}}'

deliver() {
  local valid=true run=true digest
  case $expectation in
    runs) ;;
    never-run) run=false ;;
    refused) valid=false run=false ;;
    *) fail "$name: unknown expectation $expectation" ;;
  esac
  printf '%b' "$raw" > "$work/body"
  digest=$(hmac "$work/body" "$secret")
  [ "${#digest}" -eq 64 ] || fail "$name: no digest"
  case $header in *@USUAL@*) header=${header%%@USUAL@*}sha256=$digest${header#*@USUAL@} ;; esac
  grep -q "^    \"name\": \"$name\"," "$work/connect" && fail "$name is there twice"
  {
    printf '  {\n    "name": %s,\n' "$(json_text "$name")"
    printf '    "bodyBase64": "%s",\n' "$(base64_of < "$work/body")"
    printf '    "secret": %s,\n' "$(json_text "$secret")"
    if [ "$header" = '@NONE@' ]; then printf '    "header": null,\n'; else printf '    "header": %s,\n' "$(json_text "$header")"; fi
    printf '    "valid": %s,\n    "run": %s,\n    "note": %s\n  },\n' "$valid" "$run" "$(json_text "$note")"
  } >> "$work/connect"
}
digest_of() { printf '%b' "$1" > "$work/body" && hmac "$work/body" "$2" "${3:-sha256}"; }

# --- every event

connect account-approved runs 'connected_account.approved.'
deliver

connect account-declined runs 'connected_account.declined.'
raw='{"event":"connected_account.declined","idempotency_key":"evt_a1f49c0e7d3b4286","occurred_at":"2025-11-21T09:20:00.125Z","data":{"object":"connected_account","id":"cm_3f8a1c52-7e90-4b6d-8a2f-d5c4e1b09a73","master_merchant_id":"mm_91d7e4b0-2c5f-4a38-b6e1-0f7a8c3d5e29","kyc_status":"declined"}}'
deliver

connect settlement-approved runs 'settlement.approved.'
raw='{"event":"settlement.approved","idempotency_key":"evt_58c2e7b604f94d1a","occurred_at":"2025-11-21T10:00:00Z","data":{"object":"settlement","id":"wd_70412","connected_account_id":"cm_3f8a1c52-7e90-4b6d-8a2f-d5c4e1b09a73","amount":125000,"status":"approved"}}'
deliver

connect settlement-declined runs 'settlement.declined.'
raw='{"event":"settlement.declined","idempotency_key":"evt_c70d1e5f82ab4396","occurred_at":"2025-11-21T10:05:00Z","data":{"object":"settlement","id":"wd_70413","connected_account_id":"cm_3f8a1c52-7e90-4b6d-8a2f-d5c4e1b09a73","amount":1,"status":"declined"}}'
deliver

connect unlisted-event never-run 'An event that the specification does not list.'
raw='{"event":"connected_account.suspended","idempotency_key":"evt_00d1e5f82ab43960","occurred_at":"2025-11-21T10:05:00Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"suspended"}}'
deliver

connect settlement-amount-unsafe never-run 'A settlement amount beyond the integers that a double holds exactly.'
raw='{"event":"settlement.approved","idempotency_key":"evt_58c2e7b604f94d1b","occurred_at":"2025-11-21T10:00:00Z","data":{"object":"settlement","id":"wd_70412","connected_account_id":"cm_1","amount":9007199254740993,"status":"approved"}}'
deliver

# --- exact bytes

connect non-ascii runs 'Amharic, accents and an emoji as raw UTF-8, in a field that the specification does not list.'
raw='{"event":"connected_account.approved","idempotency_key":"evt_1","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"approved","display_name":"አበበ ቡና – café 🎉"}}'
deliver

connect non-ascii-escaped runs 'The same as \u escapes: other bytes, another digest.'
raw='{"event":"connected_account.approved","idempotency_key":"evt_1","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"approved","display_name":"\\u12a0\\u1260\\u1260 \\u1261\\u1293 \\u2013 caf\\u00e9 \\ud83c\\udf89"}}'
deliver

connect non-ascii-re-encoded refused 'The body of "non-ascii-escaped" under the header of "non-ascii": equal as JSON, not equal as bytes.'
header="sha256=$(digest_of '{"event":"connected_account.approved","idempotency_key":"evt_1","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"approved","display_name":"አበበ ቡና – café 🎉"}}' "$usual_secret")"
raw='{"event":"connected_account.approved","idempotency_key":"evt_1","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"approved","display_name":"\\u12a0\\u1260\\u1260 \\u1261\\u1293 \\u2013 caf\\u00e9 \\ud83c\\udf89"}}'
deliver

connect crlf runs 'CRLF line ends and indents: the bytes are signed as they are.'
raw='{\r\n  "event": "connected_account.approved",\r\n  "idempotency_key": "evt_1",\r\n  "occurred_at": "2025-11-21T09:15:27Z",\r\n  "data": {\r\n    "object": "connected_account",\r\n    "id": "cm_1",\r\n    "master_merchant_id": "mm_1",\r\n    "kyc_status": "approved"\r\n  }\r\n}\r\n'
deliver

connect crlf-turned-into-lf refused 'The body of "crlf" with LF line ends under its header.'
header="sha256=$(digest_of "$(printf '%s' '{\r\n  "event": "connected_account.approved",\r\n  "idempotency_key": "evt_1",\r\n  "occurred_at": "2025-11-21T09:15:27Z",\r\n  "data": {\r\n    "object": "connected_account",\r\n    "id": "cm_1",\r\n    "master_merchant_id": "mm_1",\r\n    "kyc_status": "approved"\r\n  }\r\n}\r\n')" "$usual_secret")"
raw='{\n  "event": "connected_account.approved",\n  "idempotency_key": "evt_1",\n  "occurred_at": "2025-11-21T09:15:27Z",\n  "data": {\n    "object": "connected_account",\n    "id": "cm_1",\n    "master_merchant_id": "mm_1",\n    "kyc_status": "approved"\n  }\n}\n'
deliver

connect number-spelling runs 'Numbers in unusual spellings survive: the bytes are signed, not the values.'
raw='{"event":"connected_account.approved","idempotency_key":"evt_1","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"approved","score":10.0,"limit":1e2}}'
deliver

connect line-end-behind-body runs 'A line end behind the body is part of it.'
raw=$usual_raw'\n'
deliver

connect line-end-lost refused 'The same without the line end, under its header.'
header="sha256=$(digest_of "$usual_raw"'\n' "$usual_secret")"
deliver

connect re-serialised refused 'White space was lost on the way, as by a body parser.'
header="sha256=$(digest_of '{"event": "connected_account.approved", "idempotency_key": "evt_1", "occurred_at": "2025-11-21T09:15:27Z", "data": {"object": "connected_account", "id": "cm_1", "master_merchant_id": "mm_1", "kyc_status": "approved"}}' "$usual_secret")"
raw='{"event":"connected_account.approved","idempotency_key":"evt_1","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"approved"}}'
deliver

connect byte-order-mark never-run 'A byte order mark, signed: authentic, but not JSON.'
raw='\xef\xbb\xbf'$usual_raw
deliver

connect byte-order-mark-lost refused 'The same without its byte order mark, under its header.'
header="sha256=$(digest_of '\xef\xbb\xbf'"$usual_raw" "$usual_secret")"
deliver

connect empty-body never-run 'An empty body: the digest is right, but there is no event.'
raw=''
deliver

connect empty-body-wrong refused 'An empty body under the header of another.'
header="sha256=$(digest_of "$usual_raw" "$usual_secret")"
raw=''
deliver

connect invalid-utf-8 never-run 'Bytes that are not UTF-8: the digest is over bytes and holds, but there is no event.'
raw='{"event":"connected_account.approved","idempotency_key":"evt_\xff\xfe","data":"\xc3("}'
deliver

connect invalid-utf-8-decoded refused 'What a text decoder makes of those bytes (U+FFFD), under the header of "invalid-utf-8".'
header="sha256=$(digest_of '{"event":"connected_account.approved","idempotency_key":"evt_\xff\xfe","data":"\xc3("}' "$usual_secret")"
raw='{"event":"connected_account.approved","idempotency_key":"evt_\xef\xbf\xbd\xef\xbf\xbd","data":"\xef\xbf\xbd("}'
deliver

connect zero-bytes never-run 'Bytes 00 in the body do not end it.'
raw='{}\0000\0000x'
deliver

connect cut-at-zero-byte refused 'The same, changed behind the first byte 00.'
header="sha256=$(digest_of '{}\0000\0000x' "$usual_secret")"
raw='{}\0000\0000y'
deliver

connect all-bytes never-run 'Every byte from 00 to ff.'
raw=$(for ((i = 0; i < 256; i++)); do printf '\\x%02x' "$i"; done)
deliver

connect not-json never-run 'A signed body that is not JSON.'
raw='event=connected_account.approved&idempotency_key=evt_1'
deliver

connect duplicate-name never-run 'A signed body with a name twice.'
raw='{"event":"connected_account.declined","event":"connected_account.approved","idempotency_key":"evt_1","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"approved"}}'
deliver

connect duplicate-name-inside never-run 'A signed body with a name twice inside data.'
raw='{"event":"settlement.approved","idempotency_key":"evt_1","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"settlement","id":"wd_1","connected_account_id":"cm_1","amount":1,"amount":1000000,"status":"approved"}}'
deliver

connect idempotency-key-missing never-run 'A signed body without idempotency_key.'
raw='{"event":"connected_account.approved","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"approved"}}'
deliver

connect idempotency-key-array never-run 'A signed body with its idempotency_key in an array.'
raw='{"event":"connected_account.approved","idempotency_key":["evt_1"],"occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_1","master_merchant_id":"mm_1","kyc_status":"approved"}}'
deliver

connect body-changed refused 'approved was changed to declined.'
header="sha256=$(digest_of "$usual_raw" "$usual_secret")"
raw='{"event":"connected_account.declined","idempotency_key":"evt_6d0b2f7a91c84e35","occurred_at":"2025-11-21T09:15:27Z","data":{"object":"connected_account","id":"cm_3f8a1c52-7e90-4b6d-8a2f-d5c4e1b09a73","master_merchant_id":"mm_91d7e4b0-2c5f-4a38-b6e1-0f7a8c3d5e29","kyc_status":"approved"}}'
deliver

# --- the header's text

usual_digest=$(digest_of "$usual_raw" "$usual_secret")
case $usual_digest in *[a-f]*) ;; *) fail 'the usual digest has no letter' ;; esac
upper_digest=$(printf '%s' "$usual_digest" | tr a-f A-F)

form() { # name, header, note
  connect "$1" refused "$3"
  header=$2
  deliver
}
form header-missing '@NONE@' 'No header.'
form header-empty '' 'An empty header.'
form upper-case-hex "sha256=$upper_digest" 'The digest in upper case.'
form upper-case-prefix "SHA256=$usual_digest" 'The prefix in upper case.'
form prefix-missing "$usual_digest" 'The digest without its prefix.'
form prefix-only 'sha256=' 'The prefix without a digest.'
form prefix-twice "sha256=sha256=$usual_digest" 'The prefix twice.'
form other-prefix "v1=$usual_digest" 'Another prefix.'
form prefix-with-hyphen "sha-256=$usual_digest" 'The prefix with a hyphen.'
form prefix-with-colon "sha256:$usual_digest" 'A colon in the place of =.'
form space-behind-prefix "sha256= $usual_digest" 'A space behind the prefix.'
form trailing-space "sha256=$usual_digest " 'A space behind.'
form leading-space " sha256=$usual_digest" 'A space in front.'
form trailing-line-end "sha256=$usual_digest"$'\n' 'A line end behind.'
form trailing-character "sha256=${usual_digest}0" 'One digit too many.'
form digit-missing "sha256=${usual_digest%?}" 'One digit too few.'
form first-bytes-only "sha256=${usual_digest:0:16}" 'The first eight bytes only.'
form quoted "\"sha256=$usual_digest\"" 'In quotes.'
form two-headers-joined "sha256=$usual_digest, sha256=$usual_digest" 'Two headers joined by a comma and a space, as HTTP libraries do.'
form two-headers-joined-tight "sha256=$usual_digest,sha256=$usual_digest" 'Two headers joined by a comma.'
form wrong-and-right-joined "sha256=$(repeat 0 64), sha256=$usual_digest" 'A wrong header and the right one, joined.'
form right-and-wrong-joined "sha256=$usual_digest, sha256=$(repeat 0 64)" 'The right header and a wrong one, joined.'
form digest-in-base64 "sha256=$(bytes_of "$usual_digest" | base64_of)" 'The digest in base64.'
form digest-bit-flipped "sha256=$(flip "${usual_digest:0:2}" 1)${usual_digest:2}" 'One bit of the digest is flipped.'
form digest-last-bit-flipped "sha256=${usual_digest:0:62}$(flip "${usual_digest:62:2}" 1)" 'The last bit of the digest is flipped.'
form digest-of-zeros "sha256=$(repeat 0 64)" 'A digest of zeros.'
form full-width-digits "sha256=$(printf '%s' "$usual_digest" | sed 's/[0-9]/０/')" 'A full-width digit in the digest.'
form thousands-of-digits "sha256=$(repeat a 4096)" 'A header of four thousand digits.'

# --- other algorithms and secrets

sha1=$(digest_of "$usual_raw" "$usual_secret" sha1)
sha512=$(digest_of "$usual_raw" "$usual_secret" sha512)
other_secret=$(digest_of "$usual_raw" 'whsec_test_another_one_9d2')
upper_case_secret=$(digest_of "$usual_raw" 'WHSEC_TEST_4FT9WLZQ2MXC7RBK')
secret_with_line_end=$(digest_of "$usual_raw" "$usual_secret"$'\n')
hash_of() { openssl dgst -sha256 -binary "$1" > "$work/hash" && hex_of "$work/hash"; }
printf '%s' "$usual_raw" > "$work/body"
bare_hash=$(hash_of "$work/body")
{ printf '%s' "$usual_secret"; cat "$work/body"; } > "$work/prefixed"
prefixed_hash=$(hash_of "$work/prefixed")
# openssl takes no empty key, but HMAC fills keys up with zero bytes: one zero byte is the same key.
openssl dgst -sha256 -mac HMAC -macopt hexkey:00 -binary "$work/body" > "$work/mac"
empty_secret=$(hex_of "$work/mac")

form sha-1 "sha1=$sha1" 'HMAC-SHA1 under its own prefix.'
form sha-1-as-sha-256 "sha256=$sha1" 'HMAC-SHA1 under the prefix of SHA-256.'
form sha-512 "sha512=$sha512" 'HMAC-SHA512 under its own prefix.'
form sha-512-cut "sha256=${sha512:0:64}" 'HMAC-SHA512 cut to 64 digits.'
form hash-without-secret "sha256=$bare_hash" 'The bare SHA-256 of the body.'
form hash-of-secret-and-body "sha256=$prefixed_hash" 'The SHA-256 of secret and body one after the other.'
form wrong-secret "sha256=$other_secret" 'Signed with another secret.'
form secret-in-other-case "sha256=$upper_case_secret" 'Signed with the secret in upper case.'
form secret-with-line-end "sha256=$secret_with_line_end" 'Signed with a line end behind the secret.'
form empty-secret "sha256=$empty_secret" 'Signed with the empty secret.'

with_secret() { # name, secret, note
  connect "$1" runs "$3"
  secret=$2
  deliver
}
with_secret secret-non-ascii 'ሚስጥር-señor-🔑-0123456789' 'A secret with characters beyond ASCII: its UTF-8 bytes are the key.'
with_secret secret-punctuation 'a"b\c%d&e=f+g/h?i#j$k!l' 'A secret with quotes, backslash, percent and the like is taken literally.'
with_secret secret-inner-space 'correct horse battery staple' 'A secret with spaces inside.'
with_secret secret-like-hex '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f' 'A secret that looks like hexadecimal is text: exactly 64 bytes, one block of SHA-256.'
with_secret secret-like-base64 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=' 'A secret that looks like base64 is text.'
with_secret secret-65-bytes 'a23456789b123456789c123456789d123456789e123456789f123456789g12345' 'One byte more than the block: HMAC hashes the secret first.'
with_secret secret-200-bytes "$(repeat 0123456789 20)" 'A long secret.'

connect secret-non-ascii-as-latin-1 refused 'Signed with the ISO 8859-1 bytes of the secret.'
secret='señor-señor-señor-señor'
printf '%b' "$usual_raw" > "$work/body"
printf '%s' $'se\xf1or-se\xf1or-se\xf1or-se\xf1or' > "$work/secret"
openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(hex_of "$work/secret")" -binary "$work/body" > "$work/mac"
header="sha256=$(hex_of "$work/mac")"
deliver

connect secret-decomposed refused 'Signed with the composed form of a secret whose letter is decomposed.'
secret=$'cafe\xcc\x81-cafe\xcc\x81-cafe\xcc\x81'
header="sha256=$(digest_of "$usual_raw" $'caf\xc3\xa9-caf\xc3\xa9-caf\xc3\xa9')"
deliver

connect rfc-4231-case-2 never-run 'Test case 2 of RFC 4231: ties these vectors to published ones. The body is no event.'
secret=Jefe
raw='what do ya want for nothing?'
header='sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'
[ "$(digest_of "$raw" "$secret")" = "${header#sha256=}" ] || fail 'openssl disagrees with RFC 4231'
deliver

{ printf '[\n'; sed '$ s/,$//' "$work/connect"; printf ']\n'; } > "$connect"
