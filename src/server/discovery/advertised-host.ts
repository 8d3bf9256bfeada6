import { PrivateKey } from '@bsv/sdk'
import type { Config } from '../config/config.js'
import { AdvertisementReader } from './advertisement.js'

/** The key of this host and where it answers, without a slash at the end: clients add `/submit`. */
export function advertisedHost(
  config: Pick<Config, 'serverPrivateKey' | 'hostingUrl'>,
): { key: PrivateKey; url: string } | undefined {
  const { serverPrivateKey, hostingUrl } = config
  if (serverPrivateKey === undefined || hostingUrl === undefined) return undefined
  return { key: PrivateKey.fromHex(serverPrivateKey), url: hostingUrl.replace(/\/+$/, '') }
}

/** Reads the advertisements of this host; undefined if it has none. */
export function advertisementReader(
  config: Parameters<typeof advertisedHost>[0],
): AdvertisementReader | undefined {
  const host = advertisedHost(config)
  return host && new AdvertisementReader(host.key.toPublicKey())
}
