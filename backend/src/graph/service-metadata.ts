import { LOOKUP_SERVICES, TOPICS } from '../protocol/profile.js'
import type { ServiceMetadata } from './overlay-interfaces.js'

/** The version of this package. LARS and CARS copy `backend/src` without its package.json. */
export const VERSION = '0.1.0'

/** A node of the tree and its two branches. */
const TREE = icon('<path d="M7 16h6l6-8m-6 8l6 8"/><circle cx="7" cy="16" r="4"/>', [
  { x: 23, y: 7 },
  { x: 23, y: 25 },
])
const COIN = icon('<circle cx="16" cy="16" r="12"/>', [{ x: 16, y: 16 }])

const documentationOf = {
  topic: (name: string) => `getDocumentationForTopicManager?manager=${name}`,
  service: (name: string) => `getDocumentationForLookupServiceProvider?lookupService=${name}`,
}

/** Metadata of the topic managers. Links are relative to where a host lists them, such as `/listTopicManagers`. */
export const TOPIC_METADATA: Record<keyof typeof TOPICS, ServiceMetadata> = {
  names: {
    name: 'Mined names',
    shortDescription: 'Admits the mine tree: names mined by proof of work, from the genesis on.',
    iconURL: TREE,
    version: VERSION,
    informationURL: documentationOf.topic(TOPICS.names),
  },
  ordinals: {
    name: 'Ordinals and content',
    shortDescription: 'Admits 1-satoshi ordinals and content, and follows their transfers.',
    iconURL: COIN,
    version: VERSION,
    informationURL: documentationOf.topic(TOPICS.ordinals),
  },
}

export const LOOKUP_SERVICE_METADATA: Record<keyof typeof LOOKUP_SERVICES, ServiceMetadata> = {
  names: {
    name: 'Name lookup',
    shortDescription: 'Finds the owner of a mined name, and the node from which to mine further.',
    iconURL: TREE,
    version: VERSION,
    informationURL: documentationOf.service(LOOKUP_SERVICES.names),
  },
  ordinals: {
    name: 'Ordinal lookup',
    shortDescription: 'Finds ordinals and content by outpoint, metadata, parent, content type and owner.',
    iconURL: COIN,
    version: VERSION,
    informationURL: documentationOf.service(LOOKUP_SERVICES.ordinals),
  },
}

/** A picture as a data URL: a host need not serve it, and a page shows it offline. */
function icon(lines: string, dots: { x: number; y: number }[]): string {
  const filled = dots.map(({ x, y }) => `<circle cx="${x}" cy="${y}" r="4" fill="#17663f"/>`).join('')
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="none" stroke="#17663f" stroke-width="2">${lines}${filled}</svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}
