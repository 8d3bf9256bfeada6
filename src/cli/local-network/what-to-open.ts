import { PROFILES } from '../../../backend/src/protocol/profile.js'
import type { Filled } from './fill.js'

/** What there is to open in a local network, in lines for whoever has started it. */
export function whatToOpen(url: string, { name, origin, stream }: Filled): string {
  const { gatewayPrefixes, namesPrefixes } = PROFILES.local
  const gateway = `${url}${gatewayPrefixes[0]}`
  const names = `${url}${namesPrefixes[0]}`
  return `
A local network, with names, a site and a stream. Open

  the site           ${url}/content/${origin}:-1/
  its name           ${names}/${name}
  its metadata       ${gateway}/metadata/${origin}:-1
  the stream         ${gateway}/stream/${stream}
  all names          ${names}
  mine a name        ${url}/mine
  all that it does   ${url}/openapi.json

or mine one here:  npx minetree mine hey --url ${url}

`
}
