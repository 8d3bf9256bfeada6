import mime from 'mime'
import { UNTYPED } from '../../backend/src/protocol/media-type.js'

/**
 * The content type of a file by the extension of its name, whatever its bytes are: `application/octet-stream` where
 * the extension is none that is known. Text is said to be UTF-8, because browsers would guess otherwise.
 */
export function contentTypeOf(name: string): string {
  // The library takes a bare word for an extension; behind a slash it is a name: `html` has no extension.
  const type = mime.getType(`/${name}`) ?? UNTYPED
  return type.startsWith('text/') ? `${type}; charset=utf-8` : type
}
