import type { RequestHandler } from 'express'
import { BadRequestError } from './errors.js'

/** Refuses what a browser asks for to install it: a stranger's service worker would answer for the whole origin. */
export const refuseServiceWorkers: RequestHandler = (request, _response, next) => {
  if (request.headers['service-worker'] === 'script') {
    throw new BadRequestError('BAD_BODY', 'content must not be used as a service worker')
  }
  next()
}
