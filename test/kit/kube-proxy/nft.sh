#!/bin/sh
# The nft given to kube-proxy. Copies every transaction to NFT_LOG and passes it on to the real nft.
case " $* " in
  *" -f - "*) tee -a "$NFT_LOG" | "$REAL_NFT" "$@" ;;
  *) exec "$REAL_NFT" "$@" ;;
esac
