import { LRUCache } from 'lru-cache'
import { MIMEType } from 'whatwg-mimetype'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'

/** A content type as the response carries it, and whether a browser would run what comes with it. */
export interface ServedType {
  value: string
  active: boolean
}

interface ReadType extends ServedType {
  /** Type and subtype as browsers read the inscribed text, in lower case; empty where it is no media type. */
  essence: string
}

/** Reading a type takes longer than anything else about an answer, and there are few types. */
const known = new LRUCache<string, ReadType>({ max: 1000 })

/**
 * A field value (RFC 9110 5.5), in ASCII: what is legal beyond it has no meaning of its own, and Node would send other
 * bytes than were inscribed.
 */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/

/**
 * The `Content-Type` for a stranger's text: as inscribed where it is one legal media type, else
 * `application/octet-stream`. Read as browsers read it, so that what is judged is what will be run.
 */
export function servedType(inscribed: string): ReadType {
  const type = known.get(inscribed) ?? readType(inscribed)
  known.set(inscribed, type)
  return type
}

function readType(inscribed: string): ReadType {
  const mime = MIMEType.parse(inscribed)
  const essence = mime?.essence ?? ''
  // A browser takes a comma for the start of another type, and the last one wins (Fetch, extract a MIME type).
  if (mime === null || inscribed.includes(',') || !FIELD_VALUE.test(inscribed))
    return { value: UNTYPED, active: false, essence }
  return { value: inscribed, active: isActive(mime), essence }
}

function isActive(mime: MIMEType): boolean {
  if (mime.isHTML() || mime.isXML() || mime.isJavaScript()) return true
  // A part brings a type of its own: browsers open x-mixed-replace and mixed, and mail and page archives. The style
  // sheets of XML run, too, and have a name that isXML (which covers +xml) does not know.
  return mime.type === 'multipart' || mime.type === 'message' || mime.essence === 'text/xsl'
}
