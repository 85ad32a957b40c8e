#!/bin/sh
# The nft that kube-proxy is given: keeps a copy of every transaction in NFT_LOG and has the real one carry it out.
case " $* " in
  *" -f - "*) tee -a "$NFT_LOG" | "$REAL_NFT" "$@" ;;
  *) exec "$REAL_NFT" "$@" ;;
esac
