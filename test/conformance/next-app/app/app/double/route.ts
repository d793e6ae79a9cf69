import { double } from "../../../../application.ts";

export async function POST(request: Request): Promise<Response> {
  return Response.json(double(await request.json()));
}
